// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
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
  // Where there are any, calls come through them, behind the interceptor that `communication` has, and `fabric` asks
  // them.
  CallChecks(const WorldOptions& options, exec::RankExecutor& executor, comm::CommunicatorOptions& communication,
             fakes::FakeFabric& fabric);
  CallChecks(const CallChecks&) = delete;
  CallChecks& operator=(const CallChecks&) = delete;

  // Who looks at the operators of the rank's main fiber; null: nobody does. This outlives it. Its helper fibers, which
  // stand for threads, are looked after already.
  std::unique_ptr<operators::OperatorWatcher> watch_main_of(int rank);

 private:
  std::optional<CallWatch> calls_;
  std::optional<BufferCheck> buffers_;
  std::optional<SharingCheck> sharing_;
};

}  // namespace rehearse::sim
