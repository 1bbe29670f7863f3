// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace rehearse {

// What the next step of a fiber touches: a key of the store, a file, a lock, a message.
struct Access {
  std::uint64_t object = 0;  // the same number for the same thing in all fibers of a run; 0: not known
  bool writes = false;

  // Whether the order of the two matters. False if one of them is not known.
  bool conflicts_with(const Access& other) const noexcept {
    return object != 0 && object == other.object && (writes || other.writes);
  }
};

}  // namespace rehearse
