// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

// A small causal transformer over bytes.

struct ModelShape {
  std::int64_t context = 64;  // the number of bytes that the model sees at once
  std::int64_t layers = 2;
  std::int64_t width = 64;  // must be a multiple of `heads`
  std::int64_t heads = 4;
  bool tied = true;  // the output layer shares the embedding's weights
};

// Attention, and then two dense layers. Each of these two parts adds its result to its input.
struct BlockImpl : torch::nn::Module {
  BlockImpl(std::int64_t width, std::int64_t heads)
      : heads(heads),
        before_attention(register_module("before_attention", torch::nn::LayerNorm(norm_of(width)))),
        before_dense(register_module("before_dense", torch::nn::LayerNorm(norm_of(width)))),
        to_qkv(register_module("to_qkv", torch::nn::Linear(width, 3 * width))),
        from_heads(register_module("from_heads", torch::nn::Linear(width, width))),
        up(register_module("up", torch::nn::Linear(width, 4 * width))),
        down(register_module("down", torch::nn::Linear(4 * width, width))) {}

  // x: [batch, time, width]; hidden: [time, time], true where position i must not see position j.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& hidden) {
    const auto attended = x + from_heads(attention(before_attention(x), hidden));
    return attended + down(at::gelu(up(before_dense(attended))));
  }

 private:
  static torch::nn::LayerNormOptions norm_of(std::int64_t width) { return torch::nn::LayerNormOptions({width}); }

  at::Tensor attention(const at::Tensor& x, const at::Tensor& hidden) {
    const auto batch = x.size(0), time = x.size(1), width = x.size(2);
    const auto qkv = to_qkv(x).view({batch, time, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
    const auto scores = at::matmul(qkv[0], qkv[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(width / heads));
    const auto weights = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()).softmax(-1);
    return at::matmul(weights, qkv[2]).transpose(1, 2).reshape({batch, time, width});
  }

  std::int64_t heads;
  torch::nn::LayerNorm before_attention, before_dense;
  torch::nn::Linear to_qkv, from_heads, up, down;
};
TORCH_MODULE(Block);

struct LanguageModelImpl : torch::nn::Module {
  explicit LanguageModelImpl(const ModelShape& shape)
      : shape(shape),
        bytes(register_module("bytes", torch::nn::Embedding(256, shape.width))),
        positions(register_module("positions", torch::nn::Embedding(shape.context, shape.width))),
        last_norm(register_module("last_norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({shape.width})))),
        hidden(register_buffer("hidden", at::ones({shape.context, shape.context}, at::kBool).triu(1))) {
    TORCH_CHECK(shape.width % shape.heads == 0, "width (", shape.width, ") must be a multiple of heads (", shape.heads,
                ")");
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      blocks.push_back(register_module("block" + std::to_string(i), Block(shape.width, shape.heads)));
    }
    if (!shape.tied) head = register_module("head", torch::nn::Linear(shape.width, 256));
    const at::NoGradGuard no_grad;
    bytes->weight.mul_(0.02);
    positions->weight.mul_(0.02);
  }

  // text: [batch, context], bytes as integers. Returns logits for each next byte: [batch, context, 256].
  at::Tensor forward(const at::Tensor& text) {
    auto x = bytes(text) + positions->weight;
    for (auto& block : blocks) x = block(x, hidden);
    x = last_norm(x);
    return shape.tied ? at::linear(x, bytes->weight) : head(x);
  }

  ModelShape shape;
  torch::nn::Embedding bytes, positions;
  std::vector<Block> blocks;
  torch::nn::LayerNorm last_norm;
  torch::nn::Linear head = nullptr;
  at::Tensor hidden;
};
TORCH_MODULE(LanguageModel);
