// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <memory>
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
  // The process groups in the value (null: one of which the rank is no member).
  virtual std::vector<c10d::ProcessGroup*> groups() const { return {}; }
};

// Is the calling fiber capturing a compiled function?
bool is_watching() noexcept;
// Adds a guard to the capture. Throws CompileError when `address` lies in the frames of the compiled call itself, where
// nothing is left to look at later.
void add_watched(const void* address, std::shared_ptr<const Watched> watched);

// Tensors and process groups by identity, all else by ==.
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

// In a compiled function: `value`, which is not among its arguments, decides what the function does, and a call in
// which it is another one compiles anew. What a guard on an attribute, a global or a closure is in Python. Returns
// `value`. Outside of a capture nothing else happens.
//
//   auto compiled = rehearse::compile([&](const at::Tensor& x) { return x * rehearse::watch(scale_); });
//
// `value` must live as long as the compiled function, at its place; a copy is kept and compared in each call: tensors
// and process groups by identity, all else by ==. Throws compiler::CompileError for a variable of the function itself.
template <compiler::Watchable T>
const T& watch(const T& value) {
  if (compiler::is_watching()) {
    compiler::add_watched(&value, std::make_shared<compiler::WatchedValue<T>>(value, exec::CallSite::capture()));
  }
  return value;
}

}  // namespace rehearse
