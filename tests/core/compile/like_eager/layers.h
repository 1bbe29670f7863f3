// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>

namespace rehearse_test {

struct LayersImpl;
using Body = at::Tensor (*)(LayersImpl& net, const at::Tensor& x);

// Three linear layers of 6 x 6, each in a bucket of its own, with a forward of your choice. The input is a matrix of 4
// x 6.
struct LayersImpl : torch::nn::Module {
  explicit LayersImpl(Body body) : body_(body) {}
  at::Tensor forward(const at::Tensor& x) { return body_(*this, x); }

  torch::nn::Linear a = register_module("a", torch::nn::Linear(6, 6));
  torch::nn::Linear b = register_module("b", torch::nn::Linear(6, 6));
  torch::nn::Linear c = register_module("c", torch::nn::Linear(6, 6));
  at::Tensor buffer = register_buffer("buffer", at::zeros({4, 6}));

 private:
  Body body_;
};
TORCH_MODULE(Layers);

struct LayersProgram {
  const char* name;
  Body body;
};

// Calls each program three times, compiled and in eager mode. Expects equal results, gradients of all parameters,
// contents of the buffer, and next random numbers. Also expects that the second layer has a gradient, and that no call
// ran eagerly.
void expect_like_eager_in_pieces(std::span<const LayersProgram> programs);  // cut by DDP's buckets
void expect_like_eager_in_one_piece(std::span<const LayersProgram> programs);

}  // namespace rehearse_test
