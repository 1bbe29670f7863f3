// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include "core/compile/like_eager/like_eager.h"

namespace rehearse_test {

// A call of a module of torch::nn, or of a function of torch::nn::functional.
struct NnCall {
  std::shared_ptr<torch::nn::Module> module;  // null for a function
  std::function<Tensors(const Tensors& inputs)> run;
  Tensors inputs;
};

struct NnProgram {
  const char* name;
  NnCall (*make)();          // draws parameters and inputs from the default generator
  const char* refusal = "";  // a part of the reason why compile() refuses it; empty if compile() captures it
};

std::span<const NnProgram> nn_modules();
std::span<const NnProgram> nn_functions();

// Inputs in float32, with and without a gradient, and indices below `count`.
inline at::Tensor leaf(at::IntArrayRef sizes) { return at::randn(sizes).requires_grad_(); }
inline at::Tensor fixed(at::IntArrayRef sizes) { return at::rand(sizes); }
inline at::Tensor indices(at::IntArrayRef sizes, std::int64_t count) { return at::randint(count, sizes, at::kLong); }

inline Tensors flat(const at::Tensor& result) { return {result}; }
template <class... Parts>
Tensors flat(const std::tuple<Parts...>& results) {
  Tensors all;
  const auto add = [&](const Tensors& part) { all.insert(all.end(), part.begin(), part.end()); };
  std::apply([&](const auto&... part) { (add(flat(part)), ...); }, results);
  return all;
}

template <class Net, std::size_t... index>
Tensors forward_of(Net& net, const Tensors& inputs, std::index_sequence<index...>) {
  return flat(net->forward(inputs[index]...));
}

template <class Net, class... Inputs>
NnCall call_of(Net net, const Inputs&... inputs) {
  return {net.ptr(),
          [net](const Tensors& given) mutable { return forward_of(net, given, std::index_sequence_for<Inputs...>()); },
          {inputs...}};
}

template <class Function, class... Inputs>
NnCall function_of(Function function, const Inputs&... inputs) {
  return {nullptr, [function](const Tensors& given) { return flat(function(given)); }, {inputs...}};
}

}  // namespace rehearse_test
