// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>

#include "core/parallel/ddp_fixture.h"

namespace rehearse_test::recorded {

// The models of tests/data/ddp/models.py, under the names that they have there.

inline torch::nn::Linear linear(int inputs, int outputs, at::ScalarType dtype = at::kDouble) {
  torch::nn::Linear layer(inputs, outputs);
  layer->to(dtype);
  return layer;
}

struct Mlp : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return third(second(first(x).relu()).relu()); }
  torch::nn::Linear first = register_module("first", linear(6, 5));
  torch::nn::Linear second = register_module("second", linear(5, 5));
  torch::nn::Linear third = register_module("third", linear(5, 3));
};

struct Branches : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x, bool go_left) { return go_left ? left(x) : right(x); }
  torch::nn::Linear left = register_module("left", linear(6, 3));
  torch::nn::Linear right = register_module("right", linear(6, 3));
  torch::nn::Linear never = register_module("never", linear(6, 3));
};

struct Reused : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return twice(twice(x).relu()); }
  torch::nn::Linear twice = register_module("twice", linear(6, 6));
  torch::nn::Linear never = register_module("never", linear(6, 3));
};

struct Norm : torch::nn::Module {
  Norm() {
    norm->to(at::kDouble);
    norm->num_batches_tracked.set_data(at::zeros({}, at::kLong));  // to() turns counters into doubles, too
  }
  at::Tensor forward(const at::Tensor& x) { return last(norm(x)); }
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(6));
  torch::nn::Linear last = register_module("last", linear(6, 3));
};

struct NormUnused : Norm {
  torch::nn::Linear never = register_module("never", linear(6, 3));
};

struct Frozen : torch::nn::Module {  // with a layer that requires no gradient
  Frozen() {
    for (auto& parameter : base->parameters()) parameter.set_requires_grad(false);
  }
  at::Tensor forward(const at::Tensor& x) { return head(base(x)); }
  torch::nn::Linear base = register_module("base", linear(6, 5));
  torch::nn::Linear head = register_module("head", linear(5, 2));
};

struct Mixed : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return narrow(wide(x).to(at::kFloat)).to(at::kDouble); }
  torch::nn::Linear wide = register_module("wide", linear(6, 5));
  torch::nn::Linear narrow = register_module("narrow", linear(5, 2, at::kFloat));
};

struct TiedLayer : torch::nn::Module {
  explicit TiedLayer(const at::Tensor& shared) : weight(register_parameter("weight", shared)) {}
  at::Tensor weight;
};

struct Tied : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return x.mm(encode->weight).relu().mm(decode->weight); }
  std::shared_ptr<TiedLayer> encode =
      register_module("encode", std::make_shared<TiedLayer>(at::zeros({6, 6}, at::kDouble)));
  std::shared_ptr<TiedLayer> decode = register_module("decode", std::make_shared<TiedLayer>(encode->weight));
};

struct Sparse : torch::nn::Module {
  Sparse() { embedding->to(at::kDouble); }
  at::Tensor forward(const at::Tensor& tokens) { return head(embedding(tokens)); }
  torch::nn::Embedding embedding =
      register_module("embedding", torch::nn::Embedding(torch::nn::EmbeddingOptions(10, 4).sparse(true)));
  torch::nn::Linear head = register_module("head", linear(4, 2));
};

struct Matrix : torch::nn::Module {  // large enough for PowerSGD to compress
  at::Tensor forward(const at::Tensor& x) { return narrow(wide(x).relu()); }
  torch::nn::Linear wide = register_module("wide", linear(6, 12));
  torch::nn::Linear narrow = register_module("narrow", linear(12, 8));
};

}  // namespace rehearse_test::recorded
