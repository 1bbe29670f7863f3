// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string_view>

#include "report/writers/json.h"

namespace rehearse::sim {

// Bytes that are no pickle of plain data. what() names the opcode and its byte.
class PickleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct PickleLimits {
  std::size_t values = std::size_t{1} << 24;  // a container that stands at two places counts twice
  std::size_t depth = 64;
};

// The value that a pickle of protocol 2 or later holds, as JSON: dicts with texts as keys, lists, tuples (as arrays),
// texts, numbers, booleans and None. Calls nothing and loads nothing: the opcodes with which a pickle names or calls
// code are refused. Takes memory in proportion to the bytes and to the values that `limits` allows. Throws PickleError.
Json unpickled(std::string_view bytes, PickleLimits limits = {});

}  // namespace rehearse::sim
