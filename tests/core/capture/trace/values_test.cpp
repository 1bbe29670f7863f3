// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <rehearse_internal/shapes/shape_env.h>

#include "bit_equal.h"
#include "core/graph/module_path.h"
#include "models/toy.h"
#include "traced.h"

namespace rehearse::capture::test {
namespace {

using rehearse::test::BitEqual;

Tensors clones(const Tensors& tensors) {
  Tensors copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

TEST(CaptureValues, InPlace_LaterUsesAreOfTheChangedValueAndInputsChange) {
  const Function function = [](const Tensors& x) {
    x[0].add_(1);
    const auto view = x[0].select(0, 1);
    view.mul_(3);
    return Tensors{x[0] * 2, view};
  };
  const Tensors inputs = {at::randn({3, 2})};
  const auto captured = trace(function, inputs);
  EXPECT_EQ(targets(captured), (Names{"add_.Scalar", "select.int", "mul_.Scalar", "mul.Scalar"}));
  Tensors eager = clones(inputs), replayed = clones(inputs);
  const Tensors expected = function(eager), actual = replay(captured, replayed);
  EXPECT_THAT(replayed[0], BitEqual(eager[0]));
  EXPECT_THAT(actual, BitEqual(expected));
  EXPECT_TRUE(actual[1].is_alias_of(replayed[0]));
}

TEST(CaptureValues, OutVariant_WritesIntoItsArgument) {
  const Function function = [](const Tensors& x) {
    auto out = at::zeros({2, 3});
    at::add_out(out, x[0], x[1]);
    return Tensors{out};
  };
  const Tensors inputs = {at::randn({2, 3}), at::randn({2, 3})};
  const auto captured = trace(function, inputs);
  EXPECT_EQ(targets(captured), (Names{"zeros.default", "add.out"}));
  expect_same(captured, function, inputs);
}

TEST(CaptureValues, Results_MayBeInputsAndMayRepeat) {
  const Function function = [](const Tensors& x) { return Tensors{x[1], x[0] + 1, x[1]}; };
  const Tensors inputs = {at::randn({2}), at::randn({3})};
  const auto captured = trace(function, inputs);
  EXPECT_EQ(captured.inputs.size(), 2U);
  const Tensors actual = replay(captured, inputs);
  EXPECT_TRUE(actual[0].is_same(inputs[1]));
  EXPECT_TRUE(actual[2].is_same(inputs[1]));
}

TEST(CaptureValues, NodesKnowTheirLineAndTheModuleThatOwnsTheirParameters) {
  rehearse::test::Toy toy(rehearse::test::ToyShape{4, 6, 3});
  const Function function = [&](const Tensors& x) { return Tensors{toy->forward(x[0]) * 2}; };
  const auto captured = trace(function, {at::randn({5, 4})}, {}, named_tensors(*toy));
  std::vector<std::string> paths;
  for (const graph::Node& node : captured.module->graph()) {
    if (node.op() != graph::Op::CallFunction) continue;
    paths.push_back(module_path(*node.meta().origin));
    EXPECT_NE(node.meta().origin->source_line().find(':'), std::string::npos) << node.name();
  }
  EXPECT_EQ(paths, (Names{"net.0", "", "net.2", "", "net.4", "", "net.6", "", ""}));
  const graph::Node& product = *captured.module->graph().last()->prev();
  EXPECT_NE(product.meta().origin->source_line().find("values_test.cpp:"), std::string::npos);
}

TEST(CaptureValues, Parameters_CarryWhatDDPIgnores) {
  const auto weight = at::randn({3}).requires_grad_(), buffer = at::randn({3});
  const Function function = [&](const Tensors& x) { return Tensors{x[0] * weight + buffer}; };
  const auto captured = trace(function, {at::randn({3})}, {}, {{"w", weight, true, true}, {"b", buffer, false, false}});
  ASSERT_EQ(captured.inputs.size(), 3U);
  EXPECT_EQ(captured.inputs[1].role, GraphInput::Role::Parameter);
  EXPECT_EQ(captured.inputs[2].role, GraphInput::Role::Buffer);
  const auto nodes = captured.module->graph().placeholders();
  EXPECT_TRUE(nodes[1]->meta().ddp_ignored && nodes[1]->meta().tensor()->is_parameter);
  EXPECT_FALSE(nodes[2]->meta().ddp_ignored || nodes[2]->meta().tensor()->is_parameter);
}

TEST(CaptureValues, UnusedInputs_AreNoPlaceholders) {
  const auto captured = trace([](const Tensors& x) { return Tensors{x[1] + 1}; }, {at::ones({2}), at::ones({2})});
  EXPECT_EQ(placeholders(captured), (Names{"x1"}));
  EXPECT_EQ(captured.inputs[0].index, 1U);
}

TEST(CaptureValues, SeveralResults_AreItemsOnlyWhereUsed) {
  const Function function = [](const Tensors& x) {
    const auto parts = x[0].chunk(3, 0);
    const auto [values, places] = at::topk(x[0], 2, 1);
    return Tensors{parts[2] + parts[0], values};
  };
  const Tensors inputs = {at::randn({6, 4}).requires_grad_()};
  const auto captured = trace(function, inputs);
  EXPECT_EQ(targets(captured), (Names{"chunk.default", "_operator.getitem", "_operator.getitem", "topk.default",
                                      "_operator.getitem", "add.Tensor"}));
  expect_same(captured, function, inputs);
}

TEST(CaptureValues, ArgumentGivenBack_IsAValueOfItsOwn) {
  const Function function = [](const Tensors& x) {
    const auto same = x[0].to(at::kFloat), alike = x[0].expand({2, 2});
    return Tensors{same + alike};
  };
  const auto captured = trace(function, {at::randn({2, 2})});
  EXPECT_EQ(targets(captured), (Names{"to.dtype", "expand.default", "add.Tensor"}));
  expect_same(captured, function, {at::randn({2, 2})});
}

TEST(CaptureValues, Constants_AreMadeAnewInEachCall) {
  const Function function = [](const Tensors& x) {
    auto weights = at::tensor({1.5F, 2.5F, 3.5F});
    weights.add_(x[0]);
    return Tensors{weights * torch::tensor({2.0F, 3.0F, 4.0F}), x[0] + at::scalar_tensor(3)};
  };
  const Tensors inputs = {at::randn({3})};
  const auto captured = trace(function, inputs);
  EXPECT_EQ(captured.inputs[0].role, GraphInput::Role::Constant);
  expect_same(captured, function, inputs);
  expect_same(captured, function, {at::randn({3})});
}

TEST(CaptureValues, TensorFromOutside_IsSharedWithTheProgram) {
  const auto outside = at::randn({3}).requires_grad_();
  const Function function = [&](const Tensors& x) { return Tensors{x[0] * outside}; };
  const auto captured = trace(function, {at::randn({3})});
  ASSERT_EQ(captured.inputs.size(), 2U);
  EXPECT_TRUE(captured.inputs[1].tensor.is_same(outside));
  expect_same(captured, function, {at::randn({3})}, {outside});
}

TEST(CaptureValues, ListsOptionalListsAndEnumsOfTheSchema) {
  const Function function = [](const Tensors& x) {
    const auto picked = x[0].index({at::indexing::None, x[1]});
    const auto joined = at::cat({x[0], x[0]}, 1).to(at::kDouble);
    const auto like = at::empty_like(x[0], at::TensorOptions(at::kInt), at::MemoryFormat::Contiguous).fill_(2);
    return Tensors{picked, joined, like, at::full({2}, true, at::TensorOptions(at::kBool).layout(at::kStrided))};
  };
  const Tensors inputs = {at::randn({3, 4}), at::tensor({2, 0}, at::kLong)};
  const auto captured = trace(function, inputs);
  expect_same(captured, function, inputs);
}

TEST(CaptureValues, RequiresGrad_FollowsEagerMode) {
  const Function function = [](const Tensors& x) {
    const auto& w = x[0];
    Tensors results = {w * 2,     w.detach() * 2, at::zeros_like(w), w > 0,           w.argmax(), std::get<0>(w.max(0)),
                       w.floor(), w.view({-1}),   w.to(at::kLong),   w.new_ones({2}), w.cumsum(0)};
    {
      const at::NoGradGuard no_grad;
      results.push_back(w * 3);
      results.push_back(w.view({-1}));
    }
    auto changed = at::zeros({2, 2});
    changed.copy_(w);
    results.push_back(changed);
    results.push_back(w.data() + 1);
    results.push_back(torch::ones({2}, torch::requires_grad()) * 2);
    return results;
  };
  const Tensors inputs = {at::randn({2, 2}).requires_grad_()};
  const auto captured = trace(function, inputs);
  expect_same(captured, function, inputs);
}

TEST(CaptureValues, Dropout_StaysOneNodeAndDraws) {
  const Function function = [](const Tensors& x) { return Tensors{at::dropout(x[0], 0.5, true), at::rand_like(x[0])}; };
  const auto captured = trace(function, {at::ones({100})});
  EXPECT_EQ(targets(captured), (Names{"dropout.default", "rand_like.default"}));
  expect_same(captured, function, {at::ones({100})});
}

}  // namespace
}  // namespace rehearse::capture::test
