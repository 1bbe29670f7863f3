// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unordered_map>

#include "exec/interpose/wait_table.h"

namespace rehearse::exec::interpose {

// Fibers of one world at pthread barriers. A barrier is in it only while somebody waits there.
class BarrierTable {
 public:
  // Returns how many have come, with this one.
  unsigned arrive(const void* barrier) { return ++arrived_[barrier]; }

  unsigned arrived(const void* barrier) const {
    const auto found = arrived_.find(barrier);
    return found != arrived_.end() ? found->second : 0;
  }

  // All have come.
  void open(const void* barrier) {
    arrived_.erase(barrier);
    waiters.notify_all(barrier);
  }

  // One that had come has ended, and comes no more.
  void leave(const void* barrier) {
    const auto found = arrived_.find(barrier);
    if (found != arrived_.end() && --found->second == 0) arrived_.erase(found);
  }

  WaitTable waiters;

 private:
  std::unordered_map<const void*, unsigned> arrived_;
};

}  // namespace rehearse::exec::interpose
