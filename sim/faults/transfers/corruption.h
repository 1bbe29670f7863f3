// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <rehearse/sim/fault.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::sim {

// The number of elements of the call's first output that may be corrupted; 0: it has none.
std::int64_t corruptible_elements(const comm::Operation& call);

// True if the call's first output has the fault's element.
bool can_corrupt(const comm::Operation& call, const Fault& fault);

// Corrupts the output of one call. Construct the object before the data moves, and call apply() after that.
class Corruption {
 public:
  Corruption(const comm::Operation& call, const Fault& fault);

  void apply() const;

 private:
  const comm::Operation& call_;
  const Fault& fault_;
  std::vector<std::vector<std::uint8_t>> before_;  // for stale outputs: their former elements, in logical order
};

}  // namespace rehearse::sim
