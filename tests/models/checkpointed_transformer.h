// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <rehearse/parallel/checkpoint.h>

#include "lm_ddp/language_model.h"

namespace rehearse::test {

// Layers of width 256 with four heads for 8 x 128 tokens, with dropout. If `saves` is true, each layer is a checkpoint.
class CheckpointedTransformer {
 public:
  static constexpr std::int64_t kWidth = 256, kBatch = 8, kTime = 128;

  CheckpointedTransformer(std::int64_t layers, bool saves) : saves_(saves) {
    at::manual_seed(5);
    for (std::int64_t i = 0; i < layers; ++i) this->layers->push_back(Block(kWidth, 4));
    tokens_ = at::randn({kBatch, kTime, kWidth});
  }

  const at::Tensor& tokens() const noexcept { return tokens_; }
  at::Tensor forward(at::Tensor x) {
    for (std::size_t i = 0; i < layers->size(); ++i) x = run(i, x);
    return x;
  }
  void step() { forward(tokens_).mean().backward(); }

  torch::nn::ModuleList layers;

 private:
  at::Tensor run(std::size_t i, const at::Tensor& x) {
    const auto code = [layer = layers->ptr<BlockImpl>(i), hidden = hidden_](const at::Tensor& h) {
      return at::dropout(layer->forward(h, hidden), 0.1, true);
    };
    return saves_ ? checkpoint(code, x) : code(x);
  }

  const bool saves_;
  const at::Tensor hidden_ = at::ones({kTime, kTime}, at::kBool).triu(1);
  at::Tensor tokens_;
};

}  // namespace rehearse::test
