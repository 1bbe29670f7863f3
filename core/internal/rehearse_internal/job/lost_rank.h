// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace rehearse {

// Stands for the failure of a rank whose process is gone, so that the real failure is unknown. The verdict is then
// CRASHED.
class LostRankError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rehearse
