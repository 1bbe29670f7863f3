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
  Undefined,  // an undefined tensor
  SymInt,     // may become dynamic
  Int,        // also for enums; guarded by value, as all kinds below except Group
  Bool,
  Double,
  Text,
  Group,   // guarded by identity
  Length,  // number of items of a list, map or optional; the items follow
  Choice,  // which type a variant holds; the value follows
};

// The kind's name for people: "tensor", "int", ...
std::string_view text_of(LeafKind kind) noexcept;

// One value at the bottom of a call's arguments. A leaf points to its tensor, symbolic integer, text or group, which
// must outlive the leaf. A leaf needs no path: the argument types, and the Length and Choice leaves before it, say
// where it belongs.
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
  // Compared by its bits: NaN equals itself, and 0.0 differs from -0.0.
  static Leaf of(double value) noexcept { return of(LeafKind::Double, std::bit_cast<std::int64_t>(value)); }
};

// The leaves of a call. Up to 32 take no allocation.
using LeafList = c10::SmallVector<Leaf, 32>;

// The value for people: "4", "true", "'mean'", "tensor Float[4, 8]".
std::string text_of(const Leaf& leaf);
// The kind and the value. Different texts, groups and plain numbers give different results: the result shows a double
// by its bits and a group by its address.
std::string exact_text_of(const Leaf& leaf);

}  // namespace rehearse::compiler
