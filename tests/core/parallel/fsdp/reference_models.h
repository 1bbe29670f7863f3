// SPDX-License-Identifier: BSD-3-Clause
// The models of tests/data/fsdp_reference.py, with the same names of parameters, and a transformer for measurements.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

namespace rehearse_test {

// The interface through which a test replays a case with its model.
struct ReferenceModel : torch::nn::Module {
  virtual at::Tensor forward(const at::Tensor& x) = 0;
};

struct ReferenceMlp : ReferenceModel {
  explicit ReferenceMlp(const std::vector<std::int64_t>& widths) {
    torch::nn::ModuleList list;
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      layers.push_back(torch::nn::Linear(widths[i], widths[i + 1]));
      list->push_back(layers.back());
    }
    register_module("layers", list);
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& input) override {
    at::Tensor x = input;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      x = layers[i](x);
      if (i + 1 < layers.size()) x = x.relu();
    }
    return x;
  }

  std::vector<torch::nn::Linear> layers;
};

struct ReferenceBlockImpl : torch::nn::Module {
  ReferenceBlockImpl(std::int64_t width, std::int64_t heads)
      : heads(heads),
        ln1(register_module("ln1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        qkv(register_module("qkv", torch::nn::Linear(width, 3 * width))),
        out(register_module("out", torch::nn::Linear(width, width))),
        ln2(register_module("ln2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        up(register_module("up", torch::nn::Linear(width, 4 * width))),
        down(register_module("down", torch::nn::Linear(4 * width, width))) {}

  at::Tensor forward(const at::Tensor& input) {
    const auto b = input.size(0), t = input.size(1), d = input.size(2);
    const auto parts = qkv(ln1(input)).view({b, t, 3, heads, d / heads}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto scores = at::matmul(parts[0], parts[1].transpose(-1, -2)) / std::sqrt(static_cast<double>(d / heads));
    const auto mixed = at::matmul(scores.softmax(-1), parts[2]).transpose(1, 2).reshape({b, t, d});
    const auto x = input + out(mixed);
    return x + down(at::gelu(up(ln2(x))));
  }

  std::int64_t heads;
  torch::nn::LayerNorm ln1;
  torch::nn::Linear qkv, out;
  torch::nn::LayerNorm ln2;
  torch::nn::Linear up, down;
};
TORCH_MODULE(ReferenceBlock);

// A Linear without bias, whose weight another module may share.
struct ReferenceHeadImpl : torch::nn::Module {
  explicit ReferenceHeadImpl(const at::Tensor& given) : weight(register_parameter("weight", given)) {}
  at::Tensor forward(const at::Tensor& x) { return at::linear(x, weight); }

  at::Tensor weight;
};
TORCH_MODULE(ReferenceHead);

struct ReferenceLm : ReferenceModel {
  explicit ReferenceLm(bool tied, std::int64_t words = 29, std::int64_t width = 12, int depth = 2,
                       std::int64_t heads = 2)
      : tok(register_module("tok", torch::nn::Embedding(words, width))) {
    torch::nn::ModuleList list;
    for (int i = 0; i < depth; ++i) {
      blocks.push_back(ReferenceBlock(width, heads));
      list->push_back(blocks.back());
    }
    register_module("blocks", list);
    ln = register_module("ln", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    const auto weight = tied ? tok->weight : at::zeros({words, width});
    head = register_module("head", ReferenceHead(weight));
    to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& tokens) override {
    at::Tensor x = tok(tokens);
    for (auto& block : blocks) x = block(x);
    return head(ln(x));
  }

  torch::nn::Embedding tok;
  std::vector<ReferenceBlock> blocks;
  torch::nn::LayerNorm ln{nullptr};
  ReferenceHead head{nullptr};
};

// Has only blocks, in float, so its cost is that of its layers.
struct ReferenceTransformer : ReferenceModel {
  ReferenceTransformer(int depth, std::int64_t width, std::int64_t heads) {
    torch::nn::ModuleList list;
    for (int i = 0; i < depth; ++i) {
      blocks.push_back(ReferenceBlock(width, heads));
      list->push_back(blocks.back());
    }
    register_module("blocks", list);
  }
  at::Tensor forward(const at::Tensor& input) override {
    at::Tensor x = input;
    for (auto& block : blocks) x = block(x);
    return x;
  }

  std::vector<ReferenceBlock> blocks;
};

}  // namespace rehearse_test
