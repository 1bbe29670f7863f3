// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unordered_map>

#include "exec/interpose/wait_table.h"

namespace rehearse::exec::interpose {

// The fibers of one world that wait at pthread barriers. Contains a barrier only while a fiber waits there.
class BarrierTable {
 public:
  unsigned arrive(const void* barrier) { return ++arrived_[barrier]; }

  unsigned arrived(const void* barrier) const {
    const auto found = arrived_.find(barrier);
    return found != arrived_.end() ? found->second : 0;
  }

  // Call it when all have arrived: wakes the waiting fibers.
  void open(const void* barrier) {
    arrived_.erase(barrier);
    waiters.notify_all(barrier);
  }

  // Call it when a fiber that has arrived stops waiting, because its run ends: the fiber no longer counts.
  void leave(const void* barrier) {
    const auto found = arrived_.find(barrier);
    if (found != arrived_.end() && --found->second == 0) arrived_.erase(found);
  }

  WaitTable waiters;

 private:
  std::unordered_map<const void*, unsigned> arrived_;
};

}  // namespace rehearse::exec::interpose
