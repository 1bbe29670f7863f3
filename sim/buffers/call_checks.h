// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <rehearse/sim/world_options.h>
#include <rehearse_internal/comm/communicator_options.h>

#include "buffer_check.h"
#include "call_watch.h"
#include "sharing_check.h"

namespace rehearse::sim {

// The checkers that a world's options ask for. What is given outlives it; it outlives communicators and fabric.
class CallChecks {
 public:
  // Where there are any, calls come through them, behind the gate that `communication` has, and `fabric` asks them.
  CallChecks(const WorldOptions& options, exec::RankExecutor& executor, comm::CommunicatorOptions& communication,
             fakes::FakeFabric& fabric);

  // Who looks at the operators of the rank's main fiber; null: nobody does.
  operators::OperatorWatcher* watcher_of(int rank) noexcept;

 private:
  std::optional<CallWatch> calls_;
  std::optional<BufferCheck> buffers_;
  std::optional<SharingCheck> sharing_;
};

}  // namespace rehearse::sim
