// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/normalization.h>

namespace rehearse::test {

// The model of PyTorch's test_call_method_forward. Each of its two layers has a LayerNorm and LibTorch's own
// MultiheadAttention. The attention is over time, separately for each pair of batch and frequency. The model reads
// sizes as plain integers, as most C++ models and the code of LibTorch's attention do.
struct NormedAttentionImpl : torch::nn::Module {
  explicit NormedAttentionImpl(std::int64_t features = 96, std::int64_t heads = 4, int layers = 2) {
    for (int i = 0; i < layers; ++i) {
      norms.push_back(
          register_module("norm" + std::to_string(i), torch::nn::LayerNorm(torch::nn::LayerNormOptions({features}))));
      attentions.push_back(
          register_module("attention" + std::to_string(i), torch::nn::MultiheadAttention(features, heads)));
    }
  }

  // x: [batch, frequency, time, features]; returns the same sizes.
  at::Tensor forward(const at::Tensor& input) {
    const auto batch = input.size(0), frequency = input.size(1), time = input.size(2), features = input.size(3);
    auto x = input;
    for (std::size_t i = 0; i < norms.size(); ++i) {
      // LibTorch's module has no batch_first, so it takes [time, batch * frequency, features].
      x = norms[i](x.reshape({batch * frequency, time, features})).transpose(0, 1);
      x = std::get<0>(attentions[i]->forward(x, x, x));
      x = x.transpose(0, 1).reshape({batch, frequency, time, features});
    }
    return x;
  }

  std::vector<torch::nn::LayerNorm> norms;
  std::vector<torch::nn::MultiheadAttention> attentions;
};
TORCH_MODULE(NormedAttention);

}  // namespace rehearse::test
