// SPDX-License-Identifier: BSD-3-Clause
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bit_equal.h"
#include "kit/graph/program_runner.h"
#include "models/bert.h"
#include "models/transformer.h"

// Contract: BERT here equals transformers' BERT in names, sizes and results. The small transformer is causal.
namespace rehearse::test {
namespace {

std::int64_t numbers_in(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const auto& parameter : module.parameters()) count += parameter.numel();
  return count;
}

// The ids of bert_tiny_expected.json.
at::Tensor tiny_ids() { return (at::arange(64, at::kLong) * 7 % 1000).reshape({2, 32}); }

TEST(BertModels, Base_HasAsManyNumbersAsTransformers) {
  EXPECT_EQ(numbers_in(*BertForMaskedLM(BertShape::base())), 109'514'298);
}

// In the archive, names of parameters begin with `m.`, because the exported module holds the model as its member `m`.
// The archive also has a pooler.
TEST(BertModels, Tiny_WithTheWeightsOfTheExportedOne_GivesItsResults) {
  const auto exported = graph::load_pt2(REHEARSE_TEST_DATA "/truth/bert_tiny.pt2");
  BertModel model(BertShape::tiny());
  model->eval();
  std::set<std::string> taken;
  {
    const at::NoGradGuard no_grad;
    for (auto& item : model->named_parameters()) {
      const auto* weight = exported.module->find_attribute("m." + item.key());
      ASSERT_NE(weight, nullptr) << item.key();
      item.value().copy_(weight->tensor);
      taken.insert("m." + item.key());
    }
  }
  for (const auto& input : exported.inputs) {
    if (input.kind != graph::InputSpec::Kind::Parameter || input.target.starts_with("m.pooler.")) continue;
    EXPECT_TRUE(taken.contains(input.target)) << input.target;
  }
  const auto expected = graph::ProgramRunner(exported).run({tiny_ids()})[0].toTensor();
  EXPECT_THAT(model(tiny_ids()), BitEqual(expected));
}

TEST(BertModels, Tiny_TakesAnySize) {
  BertForMaskedLM model(BertShape::tiny());
  for (const auto& [batch, length] : {std::pair{0, 3}, {1, 1}, {3, 7}, {2, 512}}) {
    const auto ids = at::ones({batch, length}, at::kLong);
    EXPECT_EQ(model(ids).sizes(), (at::IntArrayRef{batch, length, 1000}));
  }
}

TEST(BertModels, Loss_LeavesOutWhatIsNotToBeGuessed) {
  BertForMaskedLM model(BertShape::tiny());
  model->eval();
  auto labels = at::full({2, 32}, -100, at::kLong);
  labels[1][3] = 17;
  const auto [loss, logits] = model->loss(tiny_ids(), labels);
  EXPECT_TRUE(at::allclose(loss, -logits[1][3].log_softmax(-1)[17]));
  loss.backward();
  for (const auto& item : model->named_parameters()) EXPECT_TRUE(item.value().grad().defined()) << item.key();
}

TEST(TransformerModel, LooksBackOnly) {
  Transformer model;
  model->eval();
  auto text = at::arange(12, at::kLong).reshape({2, 6});
  const auto before = model(text);
  EXPECT_EQ(before.sizes(), (at::IntArrayRef{2, 6, 50}));
  text[1][4] = 49;
  const auto after = model(text);
  EXPECT_THAT(after[0], BitEqual(before[0]));
  EXPECT_THAT(after[1].slice(0, 0, 4), BitEqual(before[1].slice(0, 0, 4)));
  EXPECT_FALSE(at::equal(after[1][4], before[1][4]));
  EXPECT_FALSE(at::equal(after[1][5], before[1][5]));
}

TEST(TransformerModel, TakesAnySize) {
  Transformer model;
  for (const auto& [batch, length] : {std::pair{0, 3}, {1, 1}, {3, 7}, {2, 64}}) {
    EXPECT_EQ(model(at::ones({batch, length}, at::kLong)).sizes(), (at::IntArrayRef{batch, length, 50}));
  }
}

}  // namespace
}  // namespace rehearse::test
