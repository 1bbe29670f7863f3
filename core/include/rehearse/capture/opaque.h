// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse {

namespace capture::detail {

using OpaqueBody = std::vector<at::Tensor> (*)(const std::vector<at::Tensor>&);

// Calls the operator rehearse::opaque, which runs `body`. `type`: the name of the function's type, which other bodies
// may share.
std::vector<at::Tensor> call_opaque(const char* type, OpaqueBody body, const std::vector<at::Tensor>& tensors);

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

// Calls function(tensors...), which a capture records as one node. Use it for code that a graph could not hold
// otherwise, such as a custom autograd function, or a hook that a capture refuses. Each call of the graph runs the
// function itself, and autograd differentiates the function as in eager mode. So a graph with such a node runs under
// eager autograd, also with the back end aot_eager.
//
//   auto y = rehearse::opaque([](const at::Tensor& x) { return Cube::apply(x); }, x * 2);
//
// The function must have no state (no captures, no function pointer), because the graph outlives the call. It returns a
// tensor or a vector of tensors. A capture runs it once on fakes to learn its outputs, so it must not read data. A
// capture refuses a function that changes its tensors in place.
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
