// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

namespace rehearse::test {

struct TransformerShape {
  std::int64_t layers = 2;
  std::int64_t width = 32;  // a multiple of `heads`
  std::int64_t heads = 2;
  std::int64_t vocabulary = 50;
  std::int64_t length = 64;  // maximum number of positions
  double dropout = 0.1;
};

// Causal attention, and then two dense layers. Each of these two parts adds its result to its input. Attention is
// written out in single operators.
struct TransformerBlockImpl : torch::nn::Module {
  explicit TransformerBlockImpl(const TransformerShape& shape)
      : before_attention(register_module("before_attention", norm_of(shape))),
        before_dense(register_module("before_dense", norm_of(shape))),
        to_qkv(register_module("to_qkv", torch::nn::Linear(shape.width, 3 * shape.width))),
        from_heads(register_module("from_heads", torch::nn::Linear(shape.width, shape.width))),
        up(register_module("up", torch::nn::Linear(shape.width, 4 * shape.width))),
        down(register_module("down", torch::nn::Linear(4 * shape.width, shape.width))),
        dropout(register_module("dropout", torch::nn::Dropout(shape.dropout))),
        heads(shape.heads),
        head_width(shape.width / shape.heads) {}

  // x: [batch, length, width]; hidden: [length, length], true if position i must not see position j.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& hidden) {
    const auto attended = x + dropout(from_heads(attention(before_attention(x), hidden)));
    return attended + dropout(down(at::gelu(up(before_dense(attended)))));
  }

  static torch::nn::LayerNorm norm_of(const TransformerShape& shape) {
    return torch::nn::LayerNorm(torch::nn::LayerNormOptions({shape.width}));
  }

  torch::nn::LayerNorm before_attention, before_dense;
  torch::nn::Linear to_qkv, from_heads, up, down;
  torch::nn::Dropout dropout;

 private:
  at::Tensor attention(const at::Tensor& x, const at::Tensor& hidden) {
    const auto batch = x.sym_size(0), length = x.sym_size(1);
    const auto qkv = to_qkv(x).view_symint({batch, length, 3, heads, head_width}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto scores = at::matmul(qkv[0], qkv[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(head_width));
    const auto weights = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()).softmax(-1);
    return at::matmul(weights, qkv[2]).transpose(1, 2).reshape_symint({batch, length, heads * head_width});
  }

  std::int64_t heads, head_width;
};
TORCH_MODULE(TransformerBlock);

// A small causal language model whose batch and length may vary, because it reads no size as an integer.
struct TransformerImpl : torch::nn::Module {
  explicit TransformerImpl(const TransformerShape& shape = {})
      : words(register_module("words", torch::nn::Embedding(shape.vocabulary, shape.width))),
        positions(register_module("positions", torch::nn::Embedding(shape.length, shape.width))),
        last_norm(register_module("last_norm", TransformerBlockImpl::norm_of(shape))),
        head(register_module("head", torch::nn::Linear(shape.width, shape.vocabulary))) {
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      blocks.push_back(register_module("block" + std::to_string(i), TransformerBlock(shape)));
    }
  }

  // text: [batch, length], whole numbers below `vocabulary`. Returns logits, [batch, length, vocabulary].
  at::Tensor forward(const at::Tensor& text) {
    const auto length = text.sym_size(1);
    const auto hidden = at::ones_symint({length, length}, at::TensorOptions(at::kBool)).triu(1);
    auto x = words(text) + positions->weight.slice_symint(0, 0, length);
    for (auto& block : blocks) x = block(x, hidden);
    return head(last_norm(x));
  }

  torch::nn::Embedding words, positions;
  std::vector<TransformerBlock> blocks;
  torch::nn::LayerNorm last_norm;
  torch::nn::Linear head;
};
TORCH_MODULE(Transformer);

}  // namespace rehearse::test
