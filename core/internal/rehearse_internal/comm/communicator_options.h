// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <vector>

namespace rehearse::comm {

class CallInterceptor;

struct CommunicatorOptions {
  // The time limit of each operation, in virtual time, unless the call or ProcessGroup::setTimeout() sets another one.
  // 0: none.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);

  // A send copies its data and completes at once, not when it is received. Hides deadlocks, as small messages do.
  bool buffered_sends = false;

  // The sends and receives between startCoalescing() and endCoalescing() are one unit, as NCCL launches them. None of
  // them moves before all messages of this unit, and of the units that contain the peers' calls, are matched. If false,
  // each message moves alone.
  bool coalesced_as_one = false;

  // Record where each operation was called. Slow: each call walks the stack.
  bool call_sites = false;

  // Register groups by name for c10d::resolve_process_group(). Needs a registry for each rank, as TorchRankState makes
  // them.
  bool register_groups = true;

  // Not owned. Each sees a call in this order, unless one before it skips the call.
  std::vector<CallInterceptor*> interceptors = {};
};

}  // namespace rehearse::comm
