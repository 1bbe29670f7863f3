// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <c10/core/ScalarType.h>

#include <rehearse/parallel/output_tensors.h>

namespace rehearse::parallel {

// An argument of forward() as the module gets it: a copy with tensors of another dtype where
// for_each_tensor() would find tensors in it, else the argument itself. Views (std::span, at::TensorList) are
// passed on as they are: the tensors are not theirs.
template <class Arg>
inline constexpr bool is_cast =
    holds_tensors<std::remove_cvref_t<Arg>>() && std::is_copy_constructible_v<std::remove_cvref_t<Arg>>;
template <class Arg>
using CastInput = std::conditional_t<is_cast<Arg>, std::remove_cvref_t<Arg>, Arg&&>;

// Floating-point tensors of `arg`, if it is not yet of it, in `dtype`; as _cast_forward_inputs() of PyTorch.
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

// Calls `body` with the arguments, each cast, of the same value category.
template <class Body, class... Args>
decltype(auto) with_cast_inputs([[maybe_unused]] at::ScalarType dtype, Body&& body, Args&&... args) {
  std::tuple<CastInput<Args>...> held(cast_input<Args>(dtype, std::forward<Args>(args))...);
  return std::apply([&](auto&... each) -> decltype(auto) { return body(static_cast<Args&&>(each)...); }, held);
}

}  // namespace rehearse::parallel
