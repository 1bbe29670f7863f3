// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "models/bert_layers.h"

namespace rehearse::test {

// Embeddings and layers: transformers' BertModel without its pooler. Weights are drawn from a normal distribution with
// deviation 0.02. Biases are 0, and the weights of LayerNorm are 1.
struct BertModelImpl : torch::nn::Module {
  explicit BertModelImpl(const BertShape& shape)
      : embeddings(register_module("embeddings", BertEmbeddings(shape))),
        encoder(register_module("encoder", std::make_shared<BertPart>())) {
    const auto list = encoder->add("layer", std::make_shared<BertPart>());
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      layers.push_back(list->add(std::to_string(i).c_str(), BertLayer(shape)));
    }
    initialise(*this);
  }

  // ids: [batch, length]; returns [batch, length, hidden].
  at::Tensor forward(const at::Tensor& ids) {
    auto x = embeddings(ids);
    for (auto& layer : layers) x = layer(x);
    return x;
  }

  static void initialise(torch::nn::Module& module) {
    const at::NoGradGuard no_grad;
    for (auto& item : module.named_parameters()) {
      if (item.key().find("LayerNorm") != std::string::npos) continue;
      if (item.key().ends_with("bias")) {
        item.value().zero_();
      } else {
        item.value().normal_(0, 0.02);
      }
    }
  }

  BertEmbeddings embeddings;
  std::shared_ptr<BertPart> encoder;
  std::vector<BertLayer> layers;
};
TORCH_MODULE(BertModel);

// BertModel with the head that guesses masked words: transformers' BertForMaskedLM, whose decoder shares the weight of
// the word embeddings.
struct BertForMaskedLMImpl : torch::nn::Module {
  explicit BertForMaskedLMImpl(const BertShape& shape = BertShape::base())
      : bert(register_module("bert", BertModel(shape))),
        cls(register_module("cls", std::make_shared<BertPart>())),
        predictions(cls->add("predictions", std::make_shared<BertPart>())),
        transform(predictions->add("transform", std::make_shared<BertPart>())),
        dense(transform->add("dense", torch::nn::Linear(shape.hidden, shape.hidden))),
        norm(transform->add("LayerNorm", bert_norm(shape.hidden))),
        bias(predictions->register_parameter("bias", at::zeros({shape.vocabulary}))) {
    BertModelImpl::initialise(*transform);
  }

  // ids: [batch, length]; returns logits [batch, length, vocabulary].
  at::Tensor forward(const at::Tensor& ids) {
    const auto x = norm(at::gelu(dense(bert(ids))));
    return at::linear(x, bert->embeddings->word_embeddings->weight, bias);
  }

  // labels: [batch, length], -100 at positions without a word to guess. Returns the loss and the logits.
  std::tuple<at::Tensor, at::Tensor> loss(const at::Tensor& ids, const at::Tensor& labels) {
    const auto logits = forward(ids);
    const auto loss = at::cross_entropy_loss(logits.flatten(0, 1), labels.flatten());
    return {loss, logits};
  }

  BertModel bert;
  std::shared_ptr<BertPart> cls, predictions, transform;
  torch::nn::Linear dense;
  torch::nn::LayerNorm norm;
  at::Tensor bias;
};
TORCH_MODULE(BertForMaskedLM);

}  // namespace rehearse::test
