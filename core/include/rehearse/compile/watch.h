// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <memory>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <rehearse/compile/guard_failure.h>
#include <rehearse/exec/call_site.h>
#include <rehearse/job/group.h>

namespace rehearse {
namespace compiler {

// A value outside of the arguments, as it was when the function was captured.
class Watched {
 public:
  virtual ~Watched() = default;
  virtual bool holds() const = 0;
  virtual GuardFailure failure() const = 0;
  // The process groups in the value. An entry is null if this rank is not a member of the group.
  virtual std::vector<c10d::ProcessGroup*> groups() const { return {}; }
};

// Whether the calling fiber is capturing a compiled function.
bool is_watching() noexcept;
// Adds a guard to the capture. Throws CompileError if `address` is on the stack of the compiled call, because the
// variable will be gone when the guard is checked.
void add_watched(const void* address, std::shared_ptr<const Watched> watched);

inline bool is_unchanged(const at::Tensor& before, const at::Tensor& now) { return before.is_same(now); }
inline bool is_unchanged(const Group& before, const Group& now) { return before.get() == now.get(); }
inline std::vector<c10d::ProcessGroup*> groups_in(const Group& group) { return {group.get().get()}; }
inline std::vector<c10d::ProcessGroup*> groups_in(const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  return {group.get()};
}
template <std::equality_comparable T>
bool is_unchanged(const T& before, const T& now) {
  return before == now;
}
// 0.0 and -0.0 differ; NaN is equal to itself.
template <std::equality_comparable T>
  requires std::floating_point<T>
bool is_unchanged(const T& before, const T& now) {
  return std::isnan(before) ? std::isnan(now) : before == now && std::signbit(before) == std::signbit(now);
}
template <std::equality_comparable List>
  requires std::ranges::sized_range<List> && std::floating_point<std::ranges::range_value_t<List>>
bool is_unchanged(const List& before, const List& now) {
  return std::ranges::equal(before, now, [](const auto& a, const auto& b) { return is_unchanged(a, b); });
}

template <class T>
concept Watchable = std::copy_constructible<T> && requires(const T& value) {
  { is_unchanged(value, value) } -> std::same_as<bool>;
};

template <Watchable T>
class WatchedValue final : public Watched {
 public:
  WatchedValue(const T& value, exec::CallSite where) : address_(&value), copy_(value), where_(std::move(where)) {}
  bool holds() const override { return is_unchanged(copy_, *address_); }
  std::vector<c10d::ProcessGroup*> groups() const override {
    if constexpr (requires { groups_in(copy_); }) {
      return groups_in(copy_);
    } else {
      return {};
    }
  }
  GuardFailure failure() const override {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return {"watch()", fmt::format("{}", copy_), fmt::format("{}", *address_), where_.describe()};
    } else {
      return {"watch()", "the value at the capture", "another one", where_.describe()};
    }
  }

 private:
  const T* address_;
  T copy_;
  exec::CallSite where_;
};

}  // namespace compiler

// For use in a compiled function: says that `value`, which is not an argument, decides what the function does. A call
// in which `value` has changed compiles anew. Python's counterpart is a guard on an attribute, a global or a closure.
// Returns `value`. Does nothing else outside of a capture.
//
//   auto compiled = rehearse::compile([&](const at::Tensor& x) { return x * rehearse::watch(scale_); });
//
// `value` must live as long as the compiled function, at the same address. The capture keeps a copy, and each call
// compares: tensors and process groups by identity, floating-point numbers and lists of them so that 0.0 and -0.0
// differ and NaN is equal to itself, everything else by ==. Throws compiler::CompileError for a local
// variable of the function.
template <compiler::Watchable T>
const T& watch(const T& value) {
  if (compiler::is_watching()) {
    compiler::add_watched(&value, std::make_shared<compiler::WatchedValue<T>>(value, exec::CallSite::capture()));
  }
  return value;
}

}  // namespace rehearse
