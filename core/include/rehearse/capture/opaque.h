// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse {

namespace capture::detail {

using OpaqueBody = std::vector<at::Tensor> (*)(const std::vector<at::Tensor>&);

// Calls the operator rehearse::opaque, which runs `body`. `name`: unique to the body in this program.
std::vector<at::Tensor> call_opaque(const std::string& name, OpaqueBody body, std::vector<at::Tensor> tensors);

template <class Function, std::size_t... i>
std::vector<at::Tensor> run_opaque(const std::vector<at::Tensor>& tensors, std::index_sequence<i...>) {
  auto result = Function{}(tensors.at(i)...);
  if constexpr (std::is_same_v<decltype(result), at::Tensor>) {
    return {std::move(result)};
  } else {
    return result;
  }
}

}  // namespace capture::detail

// function(tensors...), as one node where it is captured: what a graph could not hold otherwise, a custom autograd
// function or a hook on what is computed within, runs with each call of the graph as it stands, with its own gradients.
//
//   auto y = rehearse::opaque([](const at::Tensor& x) { return Cube::apply(x); }, x * 2);
//
// The function has no state, because the graph outlives the call: no captures, no function pointer. It gives a tensor
// or a vector of tensors. In a capture it is run once on fakes to learn what it gives, so it must not look at data.
template <class Function, class... Tensors>
auto opaque(Function, const Tensors&... tensors) {
  static_assert(std::is_empty_v<Function> && std::is_default_constructible_v<Function>,
                "opaque() takes a lambda without captures: give it tensors as arguments");
  static_assert((std::is_convertible_v<const Tensors&, at::Tensor> && ...),
                "opaque() takes tensors after the function");
  using Result = std::invoke_result_t<Function, const Tensors&...>;
  constexpr bool kOne = std::is_same_v<Result, at::Tensor>;
  static_assert(kOne || std::is_same_v<Result, std::vector<at::Tensor>>,
                "opaque()'s function gives a tensor or a vector of tensors");
  const capture::detail::OpaqueBody body = [](const std::vector<at::Tensor>& given) {
    return capture::detail::run_opaque<Function>(given, std::index_sequence_for<Tensors...>());
  };
  auto results = capture::detail::call_opaque(typeid(Function).name(), body, {tensors...});
  if constexpr (kOne) {
    return std::move(results.front());
  } else {
    return results;
  }
}

}  // namespace rehearse
