// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <rehearse/sim/fault.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::sim {

// The elements of the call's first output that may be corrupted; 0: it has none.
std::int64_t corruptible_elements(const comm::Operation& call);

// Has the call an output with the element that the fault is about?
bool can_corrupt(const comm::Operation& call, const Fault& fault);

// What one call brings is wrong. Make it before the data moves, and spoil when it has moved.
class Corruption {
 public:
  Corruption(const comm::Operation& call, const Fault& fault);

  void spoil() const;

 private:
  const comm::Operation& call_;
  const Fault& fault_;
  std::vector<std::vector<std::uint8_t>> before_;  // of stale outputs: their elements, in logical order
};

}  // namespace rehearse::sim
