// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/ScalarType.h>

namespace rehearse::compiler {

// What one rank sees in one place of a call's arguments.
struct InputFact {
  enum class Kind : std::uint8_t { Tensor, SymInt, Int, Float, Bool, String, None, Group, Other, Absent };

  std::string source;  // "x", "xs[1]"
  Kind kind = Kind::Absent;
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // of a tensor
  std::vector<std::int64_t> sizes{};                   // of a tensor
  std::int64_t int_value = 0;                          // of a SymInt, an Int or a Bool
  double float_value = 0;                              // of a Float
  std::string text{};                                  // of a String, of a Group its name, of others their type

  bool operator==(const InputFact&) const = default;
};

// Of one rank's call, in the order of its arguments.
using InputFacts = std::vector<InputFact>;

// As bytes, the same on every machine. decode_facts() throws CompileError for what encode() did not make, with the
// sender; floats keep their bits.
std::string encode(const InputFacts& facts);
InputFacts decode_facts(std::string_view bytes, const std::string& sender = "another rank");

}  // namespace rehearse::compiler
