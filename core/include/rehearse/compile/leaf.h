// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>
#include <c10/util/SmallVector.h>

namespace c10d {
class ProcessGroup;
}

namespace rehearse::compiler {

enum class LeafKind : std::uint8_t {
  Tensor,
  Undefined,  // a tensor without one
  SymInt,     // may become dynamic
  Int,        // guarded by value, as all that follow; enums too
  Bool,
  Double,
  Text,
  Group,   // a process group, by identity
  Length,  // items of a list, map or optional, which follow
  Choice,  // which type a variant holds; the value follows
};

// The word for people: "tensor", "int", ...
std::string_view text_of(LeafKind kind) noexcept;

// One value at the bottom of a call's arguments, looked at in place: it must outlive the leaf. Arguments are told apart
// by the sequence of their leaves alone: what stands above a leaf is given by the types and by Length and Choice before
// it.
struct Leaf {
  LeafKind kind;
  union {
    const at::Tensor* tensor;
    const c10::SymInt* sym_int;
    const std::string* text;
    c10d::ProcessGroup* group;
    std::int64_t number;  // Int, Bool, Length, Choice, and the bits of a Double
  };

  static Leaf of(const at::Tensor& value) noexcept {
    return {.kind = value.defined() ? LeafKind::Tensor : LeafKind::Undefined, .tensor = &value};
  }
  static Leaf of(const c10::SymInt& value) noexcept { return {.kind = LeafKind::SymInt, .sym_int = &value}; }
  static Leaf of(const std::string& value) noexcept { return {.kind = LeafKind::Text, .text = &value}; }
  static Leaf of_group(c10d::ProcessGroup* group) noexcept { return {.kind = LeafKind::Group, .group = group}; }
  static Leaf of(LeafKind kind, std::int64_t value) noexcept { return {.kind = kind, .number = value}; }
  // By its bits: NaN is itself, and 0.0 is not -0.0.
  static Leaf of(double value) noexcept { return of(LeafKind::Double, std::bit_cast<std::int64_t>(value)); }
};

// The leaves of a call. Without allocation up to 32 of them.
using LeafList = c10::SmallVector<Leaf, 32>;

// The value for people: "4", "true", "'mean'", "tensor float32[4, 8]".
std::string text_of(const Leaf& leaf);
// The kind and the value, another text for each: a double by its bits, a group by its address.
std::string exact_text_of(const Leaf& leaf);

}  // namespace rehearse::compiler
