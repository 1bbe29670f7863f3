// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace rehearse {

// The failure of a rank whose process is gone. Used if nobody knows the real failure; the verdict is then CRASHED.
class LostRankError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rehearse
