// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstdint>

#include <ATen/ATen.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

// The layers of BERT, named and ordered as in Hugging Face's transformers (v5), with symbolic sizes. Attention has no
// mask, so all positions are visible. Unlike in transformers, an empty batch works, because no call of view() leaves a
// size to infer.
namespace rehearse::test {

struct BertShape {
  std::int64_t layers = 12;
  std::int64_t hidden = 768;
  std::int64_t heads = 12;
  std::int64_t intermediate = 3072;
  std::int64_t vocabulary = 30522;
  std::int64_t positions = 512;
  double dropout = 0.1;

  static BertShape base() { return {}; }
  // The shape of tests/data/truth/bert_tiny.pt2.
  static BertShape tiny() { return {.layers = 2, .hidden = 64, .heads = 2, .intermediate = 128, .vocabulary = 1000}; }
};

inline torch::nn::LayerNorm bert_norm(std::int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}).eps(1e-12));
}

// Adds up the embeddings of words, positions and token types, and normalizes the sum. All tokens have the first type.
struct BertEmbeddingsImpl : torch::nn::Module {
  explicit BertEmbeddingsImpl(const BertShape& shape)
      : word_embeddings(register_module(
            "word_embeddings",
            torch::nn::Embedding(torch::nn::EmbeddingOptions(shape.vocabulary, shape.hidden).padding_idx(0)))),
        position_embeddings(
            register_module("position_embeddings", torch::nn::Embedding(shape.positions, shape.hidden))),
        token_type_embeddings(register_module("token_type_embeddings", torch::nn::Embedding(2, shape.hidden))),
        norm(register_module("LayerNorm", bert_norm(shape.hidden))),
        dropout(register_module("dropout", torch::nn::Dropout(shape.dropout))),
        position_ids(register_buffer("position_ids", at::arange(shape.positions, at::kLong).unsqueeze(0))),
        token_type_ids(register_buffer("token_type_ids", at::zeros({1, shape.positions}, at::kLong))) {}

  // ids: [batch, length]; returns [batch, length, hidden].
  at::Tensor forward(const at::Tensor& ids) {
    const auto positions = position_ids.slice_symint(1, 0, ids.sym_size(1));
    const auto types = token_type_ids.slice_symint(1, 0, ids.sym_size(1)).expand_symint(ids.sym_sizes());
    const auto words = word_embeddings(ids);
    const auto typed = words + token_type_embeddings(types);
    return dropout(norm(typed + position_embeddings(positions)));
  }

  torch::nn::Embedding word_embeddings, position_embeddings, token_type_embeddings;
  torch::nn::LayerNorm norm;
  torch::nn::Dropout dropout;
  at::Tensor position_ids, token_type_ids;
};
TORCH_MODULE(BertEmbeddings);

struct BertSelfAttentionImpl : torch::nn::Module {
  explicit BertSelfAttentionImpl(const BertShape& shape)
      : query(register_module("query", torch::nn::Linear(shape.hidden, shape.hidden))),
        key(register_module("key", torch::nn::Linear(shape.hidden, shape.hidden))),
        value(register_module("value", torch::nn::Linear(shape.hidden, shape.hidden))),
        heads(shape.heads),
        head_width(shape.hidden / shape.heads),
        dropout(shape.dropout) {}

  // x, result: [batch, length, hidden].
  at::Tensor forward(const at::Tensor& x) {
    const auto batch = x.sym_size(0), length = x.sym_size(1);
    const auto per_head = [&](const at::Tensor& flat) {
      return flat.view_symint({batch, length, heads, head_width}).transpose(1, 2);
    };
    const auto q = per_head(query(x)), k = per_head(key(x)), v = per_head(value(x));
    const auto attended = at::scaled_dot_product_attention(q, k, v, {}, is_training() ? dropout : 0.0, false,
                                                           1 / std::sqrt(static_cast<double>(head_width)));
    return attended.transpose(1, 2).reshape_symint({batch, length, heads * head_width});
  }

  torch::nn::Linear query, key, value;
  std::int64_t heads, head_width;
  double dropout;
};
TORCH_MODULE(BertSelfAttention);

// The last part of attention and of the feed-forward layer: goes back to the hidden width, adds the input, and
// normalizes.
struct BertOutputImpl : torch::nn::Module {
  BertOutputImpl(std::int64_t from, const BertShape& shape)
      : dense(register_module("dense", torch::nn::Linear(from, shape.hidden))),
        norm(register_module("LayerNorm", bert_norm(shape.hidden))),
        dropout(register_module("dropout", torch::nn::Dropout(shape.dropout))) {}

  at::Tensor forward(const at::Tensor& x, const at::Tensor& residual) { return norm(dropout(dense(x)) + residual); }

  torch::nn::Linear dense;
  torch::nn::LayerNorm norm;
  torch::nn::Dropout dropout;
};
TORCH_MODULE(BertOutput);

// Holds modules and parameters under names, and computes nothing. Its own name is a component of the parameters' paths.
struct BertPart : torch::nn::Module {
  template <typename Holder>
  Holder add(const char* name, Holder module) {
    return register_module(name, std::move(module));
  }
};

struct BertLayerImpl : torch::nn::Module {
  explicit BertLayerImpl(const BertShape& shape)
      : attention(register_module("attention", std::make_shared<BertPart>())),
        self(attention->add("self", BertSelfAttention(shape))),
        attention_output(attention->add("output", BertOutput(shape.hidden, shape))),
        intermediate(register_module("intermediate", std::make_shared<BertPart>())),
        dense(intermediate->add("dense", torch::nn::Linear(shape.hidden, shape.intermediate))),
        output(register_module("output", BertOutput(shape.intermediate, shape))) {}

  at::Tensor forward(const at::Tensor& x) {
    const auto attended = attention_output(self(x), x);
    return output(at::gelu(dense(attended)), attended);
  }

  std::shared_ptr<BertPart> attention;
  BertSelfAttention self;
  BertOutput attention_output;
  std::shared_ptr<BertPart> intermediate;
  torch::nn::Linear dense;
  BertOutput output;
};
TORCH_MODULE(BertLayer);

}  // namespace rehearse::test
