// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string_view>

#include "report/writers/json.h"

namespace rehearse::sim {

// The bytes are no pickle of plain data, or exceed the limits.
class PickleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct PickleLimits {
  std::size_t values = std::size_t{1} << 24;  // a value counts once for each reference to it
  std::size_t texts = std::size_t{1} << 30;   // bytes of all texts; a text counts once for each reference to it
  std::size_t depth = 64;
};

// Returns the value that a pickle of protocol 2 to 5 holds, as JSON: dicts with texts as keys, lists, tuples (as
// arrays), texts, numbers, booleans and None. Refuses the opcodes with which a pickle names or calls code. Takes memory
// in proportion to the bytes and to the values that `limits` allows. Throws PickleError.
Json unpickled(std::string_view bytes, PickleLimits limits = {});

}  // namespace rehearse::sim
