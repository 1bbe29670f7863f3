// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

namespace rehearse::test {

struct ToyShape {
  std::int64_t in = 10;
  std::int64_t hidden = 5000;
  std::int64_t out = 5;
};

// The model of PyTorch's DDPOptimizer tests: four linear layers, each with a ReLU. The default generator draws the
// weights; biases are 0.01. Bytes of each layer's parameters in the default shape: 220,000; 100,020,000; 100,020,000;
// 100,020.
struct ToyImpl : torch::nn::Module {
  explicit ToyImpl(const ToyShape& shape = {}) : net(register_module("net", torch::nn::Sequential())) {
    add_layer(shape.in, shape.hidden);
    add_layer(shape.hidden, shape.hidden);
    add_layer(shape.hidden, shape.hidden);
    add_layer(shape.hidden, shape.out);
  }

  // x: [batch, in]; returns [batch, out].
  at::Tensor forward(const at::Tensor& x) { return net->forward(x); }

  torch::nn::Sequential net;

 private:
  void add_layer(std::int64_t in, std::int64_t out) {
    torch::nn::Linear linear(in, out);
    torch::nn::init::xavier_uniform_(linear->weight);
    torch::nn::init::constant_(linear->bias, 0.01);
    net->push_back(linear);
    net->push_back(torch::nn::ReLU());
  }
};
TORCH_MODULE(Toy);

}  // namespace rehearse::test
