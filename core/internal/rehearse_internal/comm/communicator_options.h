// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

namespace rehearse::comm {

class CallInterceptor;

struct CommunicatorOptions {
  // The limit of each operation, in virtual time, unless the call or ProcessGroup::setTimeout() says otherwise. 0:
  // none.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);

  // A send completes at once (its data is copied), not when it is received: hides deadlocks, as small messages do.
  bool buffered_sends = false;

  // The sends and receives between startCoalescing() and endCoalescing() are one unit, as NCCL launches them: none
  // moves before all of them, and those of every such unit that they meet, have met their peers. Otherwise each goes
  // alone.
  bool coalesced_as_one = false;

  // Keep where each operation was called. Slow: a stack walk for each.
  bool call_sites = false;

  // Register groups by name for c10d::resolve_process_group(). Needs registries by rank (TorchRankState makes them).
  bool register_groups = true;

  // Asked before each call is matched; not owned, null: nobody.
  CallInterceptor* interceptor = nullptr;
};

}  // namespace rehearse::comm
