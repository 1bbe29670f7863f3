// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's tests of BERT, sharded and compiled, in a tiny shape.
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/parallel/checkpoint.h>

#include "bit_equal.h"
#include "core/compile/seeds/seed_test.h"
#include "core/compile/seeds/sharded_training.h"
#include "models/bert.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using ::testing::HasSubstr;

constexpr std::int64_t kTexts = 4, kWords = 16;
constexpr int kSteps = 3;

// BERT for masked words with its loss. With `saves`, each layer is a checkpoint.
struct ShardedBertImpl : torch::nn::Module {
  explicit ShardedBertImpl(bool saves)
      : model(register_module("model", test::BertForMaskedLM(test::BertShape::tiny()))), saves(saves) {}

  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& ids, const at::Tensor& labels) {
    if (!saves) return model->loss(ids, labels);
    at::Tensor x = model->bert->embeddings(ids);
    for (test::BertLayer layer : model->bert->layers) {
      x = checkpoint([layer](const at::Tensor& h) mutable { return layer(h); }, x);
    }
    const at::Tensor words = model->bert->embeddings->word_embeddings->weight;
    const at::Tensor logits = at::linear(model->norm(at::gelu(model->dense(x))), words, model->bias);
    return {at::cross_entropy_loss(logits.flatten(0, 1), labels.flatten()), logits};
  }

  test::BertForMaskedLM model;
  bool saves;
};
TORCH_MODULE(ShardedBert);

// Runs a training step, which changes the shards. Returns the gradients of the shards, the loss and the logits.
template <class Net, class Call>
std::vector<at::Tensor> step_of(Net& net, Call& call, std::uint64_t seed) {
  at::manual_seed(seed);
  net.zero_grad();
  const auto vocabulary = test::BertShape::tiny().vocabulary;
  const auto ids = at::randint(vocabulary, {kTexts, kWords}, at::kLong);
  const auto labels = at::randint(vocabulary, {kTexts, kWords}, at::kLong);
  const auto [loss, logits] = call(ids, labels);
  loss.backward();
  std::vector<at::Tensor> found = descend(net.parameters());
  found.push_back(loss.detach());
  found.push_back(logits.detach());
  return found;
}

// Ranks have different texts, labels and dropout seeds.
TrainedShards expect_bert_like_eager(RankContext& ctx, bool saves, const FullyShardedOptions& options) {
  const auto made = [&] {
    at::manual_seed(1337);
    return ShardedBert(saves);
  };
  FullyShardedDataParallel fsdp(made(), ctx.group(), options), eager(made(), ctx.group(), options);
  auto compiled = compile(fsdp, {.backend = "aot_eager", .fullgraph = true});
  Counts compiles;
  for (int step = 0; step < kSteps; ++step) {
    const std::uint64_t seed = 100 * static_cast<std::uint64_t>(ctx.rank()) + static_cast<std::uint64_t>(step);
    const auto expected = step_of(eager, eager, seed), found = step_of(fsdp, compiled, seed);
    compiles.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
    EXPECT_THAT(found, BitEqual(expected)) << "step " << step << ": gradients, loss, logits";
    EXPECT_THAT(fsdp.parameters(), BitEqual(eager.parameters())) << "shards";
  }
  return {compiled.explain(), compiles};
}

TEST_F(TestMultiProc, test_hf_bert_fsdp) {
  on_ranks([this](RankContext& ctx) {
    const auto [told, compiles] = expect_bert_like_eager(ctx, false, {});
    expect_listed(told.stats, compiles, ctx.rank());
  });
}

// The root unit has embeddings and head, so it runs before and after the layers.
TEST_F(TestMultiProc, test_hf_bert_fsdp_activation_checkpointing) {
  on_ranks([this](RankContext& ctx) {
    const auto [told, compiles] =
        expect_bert_like_eager(ctx, true, {.units = UnitPolicy::of_type<test::BertLayerImpl>()});
    const auto pieces = told.pieces();
    ASSERT_EQ(pieces.size(), 4U);
    for (const std::size_t layer : {1, 2}) EXPECT_THAT(pieces[layer].text, HasSubstr("tag_activation_checkpoint"));
    expect_listed(told.stats, compiles, ctx.rank());
  });
}

}  // namespace
}  // namespace rehearse::compiler
