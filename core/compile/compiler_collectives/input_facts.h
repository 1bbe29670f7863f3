// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/ScalarType.h>

namespace rehearse::compiler {

// One rank's view of one position in a call's arguments.
struct InputFact {
  enum class Kind : std::uint8_t { Tensor, SymInt, Int, Float, Bool, String, None, Group, Other, Absent };

  std::string source;  // "x", "xs[1]"
  Kind kind = Kind::Absent;
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // for a tensor
  std::vector<std::int64_t> sizes{};                   // for a tensor
  std::int64_t int_value = 0;                          // for a SymInt, an Int, a Bool or Other
  double float_value = 0;                              // for a Float
  // Value of a String, name of a Group, kind of Other. For a segment: why the ranks compile it.
  std::string text{};

  bool operator==(const InputFact&) const = default;
};

// The facts of one rank's call, in the order of its arguments.
using InputFacts = std::vector<InputFact>;

// Encodes facts as bytes, the same on every machine; floats keep their bits. decode_facts() throws CompileError that
// names the sender if encode() did not produce the bytes.
std::string encode(const InputFacts& facts);
InputFacts decode_facts(std::string_view bytes, const std::string& sender = "another rank");

}  // namespace rehearse::compiler
