// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace rehearse::sim {

// Dumps cannot be read, or do not belong together. what() names the file and says what is wrong. If a field has a wrong
// value, what() also says which value would be right.
class DumpError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rehearse::sim
