// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <c10/core/ScalarType.h>

#include <rehearse/parallel/output_tensors.h>

namespace rehearse::parallel {

// CastInput is the type with which the module gets an argument of forward(). If the argument's type can hold tensors
// and can be copied (is_cast), the module gets a copy, in which tensors may have another dtype. Otherwise the module
// gets the argument itself. Views (std::span, at::TensorList) do not own their tensors, so the module gets them
// unchanged.
template <class Arg>
inline constexpr bool is_cast =
    holds_tensors<std::remove_cvref_t<Arg>>() && std::is_copy_constructible_v<std::remove_cvref_t<Arg>>;
template <class Arg>
using CastInput = std::conditional_t<is_cast<Arg>, std::remove_cvref_t<Arg>, Arg&&>;

// Casts the floating-point tensors in `arg` that have another dtype to `dtype`, as PyTorch's _cast_forward_inputs().
template <class Arg>
CastInput<Arg> cast_input(at::ScalarType dtype, Arg&& arg) {
  if constexpr (is_cast<Arg>) {
    std::remove_cvref_t<Arg> copy = arg;
    for_each_tensor(copy, [dtype](at::Tensor& tensor) {
      if (!tensor.defined() || !c10::isFloatingType(tensor.scalar_type())) return;
      if (tensor.scalar_type() != dtype) tensor = tensor.to(dtype);
    });
    return copy;
  } else {
    return std::forward<Arg>(arg);
  }
}

// Calls `body` with the cast arguments, each with its original value category.
template <class Body, class... Args>
decltype(auto) with_cast_inputs([[maybe_unused]] at::ScalarType dtype, Body&& body, Args&&... args) {
  std::tuple<CastInput<Args>...> held(cast_input<Args>(dtype, std::forward<Args>(args))...);
  return std::apply([&](auto&... each) -> decltype(auto) { return body(static_cast<Args&&>(each)...); }, held);
}

}  // namespace rehearse::parallel
