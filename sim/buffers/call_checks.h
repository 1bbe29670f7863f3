// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <rehearse/sim/world_options.h>
#include <rehearse_internal/comm/communicator_options.h>
#include <rehearse_internal/exec/world_local.h>

#include "buffer_check.h"
#include "call_watch.h"
#include "lone_training.h"
#include "sharing_check.h"

namespace rehearse::sim {

// The memory checkers that a world's options ask for. The constructor's arguments must outlive this object. This object
// must outlive the communicators and all transfers of `fabric`.
class CallChecks {
 public:
  // If the options ask for a checker, calls pass through the checkers after the interceptor that `communication`
  // already has, and `fabric` asks the checkers before it moves bytes.
  CallChecks(const WorldOptions& options, exec::RankExecutor& executor, comm::CommunicatorOptions& communication,
             fakes::FakeFabric& fabric);
  CallChecks(const CallChecks&) = delete;
  CallChecks& operator=(const CallChecks&) = delete;

  // Returns the watcher for the operators of the rank's main fiber, or null if nothing watches them. The watcher must
  // not outlive this object. Helper fibers, which run a rank's threads and callbacks, need no such call: the
  // constructor makes sure that they have watchers.
  std::unique_ptr<operators::OperatorWatcher> watch_main_of(int rank);

  // Call this after the run. Leaves remarks about ranks. Returns the ranks at fault, if a checker ended the world;
  // ascending.
  std::vector<int> conclude(checks::RankRemarks& remarks) const;

 private:
  std::optional<CallWatch> calls_;
  std::optional<BufferCheck> buffers_;
  std::optional<SharingCheck> sharing_;
  std::optional<LoneTraining> training_;
  std::optional<exec::WorldLocal<LoneTraining>::Lent> lent_training_;
};

}  // namespace rehearse::sim
