// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

namespace rehearse::test {

// A layer with a weight of its own. It contains none of LibTorch's layers.
struct CustomLinearImpl : torch::nn::Module {
  explicit CustomLinearImpl(std::int64_t width) : weight(register_parameter("weight", at::randn({width, width}))) {}

  at::Tensor forward(const at::Tensor& x) {
    const auto product = at::mm(x, weight.t());
    return product + at::where(product < 0.5, 0.3, 0.6);
  }

  at::Tensor weight;
};
TORCH_MODULE(CustomLinear);

// Has a linear layer as a member, so its parameters have one more name in their path.
struct WrappedLinearImpl : torch::nn::Module {
  explicit WrappedLinearImpl(std::int64_t width) : linear(register_module("linear", torch::nn::Linear(width, width))) {}

  at::Tensor forward(const at::Tensor& x) { return linear(x); }

  torch::nn::Linear linear;
};
TORCH_MODULE(WrappedLinear);

// The model of PyTorch's test_custom_layer: linear, custom layer, linear, each with a ReLU, on the sum of two inputs.
// Each weight of the default width is exactly 1 MiB.
struct CustomImpl : torch::nn::Module {
  explicit CustomImpl(std::int64_t width = 512)
      : seq(register_module("seq", torch::nn::Sequential(WrappedLinear(width), torch::nn::ReLU(), CustomLinear(width),
                                                         torch::nn::ReLU(), WrappedLinear(width), torch::nn::ReLU()))) {
  }

  // x, y: [batch, width]; returns the same sizes.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& y) { return seq->forward(x + y); }

  torch::nn::Sequential seq;
};
TORCH_MODULE(Custom);

}  // namespace rehearse::test
