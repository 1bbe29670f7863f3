// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bit_equal.h"
#include "models/attention.h"
#include "models/custom.h"
#include "models/symbols.h"
#include "models/toy.h"

// Contract: the models have the parameters of their originals, by name and bytes.
namespace rehearse::test {
namespace {

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

Sizes parameter_bytes(const torch::nn::Module& module) {
  Sizes sizes;
  for (const auto& item : module.named_parameters())
    sizes.emplace_back(item.key(), static_cast<std::int64_t>(item.value().nbytes()));
  return sizes;
}

TEST(Models, Toy_HasTheSeedsParameters) {
  Toy toy;
  EXPECT_EQ(parameter_bytes(*toy), (Sizes{{"net.0.weight", 200'000},
                                          {"net.0.bias", 20'000},
                                          {"net.2.weight", 100'000'000},
                                          {"net.2.bias", 20'000},
                                          {"net.4.weight", 100'000'000},
                                          {"net.4.bias", 20'000},
                                          {"net.6.weight", 100'000},
                                          {"net.6.bias", 20}}));
  EXPECT_THAT(toy->named_parameters()["net.6.bias"], BitEqual(at::full({5}, 0.01)));
  const auto bound = std::sqrt(6.0F / 5005.0F);  // the bound of a uniform Xavier weight
  const auto weight = toy->named_parameters()["net.6.weight"].detach();
  EXPECT_LE(weight.abs().max().item<float>(), bound);
  EXPECT_GT(weight.abs().max().item<float>(), 0.99F * bound);
}

TEST(Models, Toy_TakesAnyBatch) {
  Toy toy(ToyShape{10, 64, 5});
  for (const std::int64_t batch : {0, 1, 3, 20}) {
    EXPECT_EQ(toy(at::ones({batch, 10})).sizes(), (at::IntArrayRef{batch, 5}));
  }
}

TEST(Models, Custom_HasTheSeedsParameters) {
  Custom custom;
  EXPECT_EQ(parameter_bytes(*custom), (Sizes{{"seq.0.linear.weight", 1'048'576},
                                             {"seq.0.linear.bias", 2'048},
                                             {"seq.2.weight", 1'048'576},
                                             {"seq.4.linear.weight", 1'048'576},
                                             {"seq.4.linear.bias", 2'048}}));
}

TEST(Models, CustomLinear_AddsByThreshold) {
  CustomLinear layer(2);
  {
    const at::NoGradGuard no_grad;
    layer->weight.copy_(at::eye(2));
  }
  const auto x = at::tensor({0.25F, 0.5F, -3.0F, 4.0F}).view({2, 2});
  EXPECT_THAT(layer(x), BitEqual(at::tensor({0.25F + 0.3F, 0.5F + 0.6F, -3.0F + 0.3F, 4.0F + 0.6F}).view({2, 2})));
}

TEST(Models, NormedAttention_AttendsOverTime) {
  NormedAttention model(8, 2);
  model->eval();
  EXPECT_EQ(model->parameters().size(), 2U * (2 + 4));
  auto x = at::randn({2, 3, 5, 8});
  const auto before = model(x);
  EXPECT_EQ(before.sizes(), x.sizes());
  x[1][2] += 1;  // another sequence: only its own result may change
  x[1][2][0] *= 2;
  const auto after = model(x);
  EXPECT_THAT(after[0], BitEqual(before[0]));
  EXPECT_THAT(after[1][0], BitEqual(before[1][0]));
  EXPECT_FALSE(at::equal(after[1][2], before[1][2]));
}

TEST(Models, SymbolSplitting_TakesAnyBatch) {
  SymbolSplitting model;
  EXPECT_EQ(parameter_bytes(*model), (Sizes{{"weight1", 1'048'576}, {"weight2", 1'048'576}}));
  for (const std::int64_t batch : {0, 1, 20}) {
    EXPECT_EQ(model(at::ones({batch, 512})).sizes(), (at::IntArrayRef{2 * batch, 512}));
  }
}

TEST(Models, NonzeroSplitting_WeighsWithThePlaces) {
  NonzeroSplitting model;
  const auto x = at::randn({2, 512});
  const auto once = model(x, at::tensor({7, 0, 0, 0}));                   // place 0
  EXPECT_THAT(model(x, at::tensor({0, 12, 0, 11})), BitEqual(once * 6));  // places 1 and 3
  EXPECT_THAT(model(x, at::tensor({0, 0})), BitEqual(once * 0));
}

// In eager mode, these models read a plain number from y, not a symbol.
TEST(Models, UnbackedSplitting_MultipliesByTheFirstNumber) {
  const auto x = at::randn({2, 512});
  DirectSplitting direct;
  EXPECT_THAT(direct(x, at::tensor({12, 13})), BitEqual(direct(x, at::tensor({1, 13})) * 12));
  IndirectSplitting indirect;
  EXPECT_THAT(indirect(x, at::tensor({12, 13})), BitEqual(indirect(x, at::tensor({1, 13})) * 12));
  EXPECT_THAT(indirect(x, at::tensor({0, 13})), BitEqual(indirect(x, at::tensor({1, 13})) * 0));
  TortureSplitting torture;
  EXPECT_THAT(torture(x, at::tensor({12, 13})), BitEqual(torture(x, at::tensor({1, 13})) * 12));
  EXPECT_EQ(parameter_bytes(*torture).size(), 3U);
}

TEST(Models, TwoLinearsAndRandomProduct_HaveTheSeedsShapes) {
  EXPECT_EQ(TwoLinears()(at::ones({2, 3, 768})).sizes(), (at::IntArrayRef{2, 3, 768}));
  EXPECT_TRUE(RandomProduct()->parameters().empty());
  EXPECT_EQ(RandomProduct()().sizes(), (at::IntArrayRef{3}));
}

}  // namespace
}  // namespace rehearse::test
