// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse/graph/graph_module.h>
#include <rehearse/graph/interpreter.h>
#include <rehearse/shapes/errors.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "traced.h"

namespace rehearse::capture::test {
namespace {

using Sizes = std::vector<std::int64_t>;

const graph::Node& node_with(const CapturedGraph& captured, const std::string& target) {
  for (const graph::Node& node : captured.module->graph()) {
    if (node.target() == target) return node;
  }
  throw std::out_of_range("there is no " + target);
}

TEST(CaptureSymbols, Sizes_ComeAsPlaceholdersBehindTheirTensorAndArithmeticIsNodes) {
  const Function function = [](const Tensors& x) {
    const auto n = x[0].sym_size(0);
    const auto flat = x[0].reshape_symint({n * 2, 3});
    return Tensors{flat, at::ones_symint({n + 1, n * 2}), x[0].narrow_symint(0, 1, n - 1)};
  };
  const auto captured = trace(function, {at::randn({4, 6}).requires_grad_()}, {{0, 0}});
  EXPECT_EQ(placeholders(captured), (Names{"x0", "s0"}));
  EXPECT_EQ(captured.inputs[1].kind, GraphInput::Kind::Size);
  EXPECT_EQ(captured.inputs[1].name, "x0.size(0)");
  EXPECT_EQ(targets(captured), (Names{"_operator.mul", "reshape.default", "_operator.add", "ones.default",
                                      "_operator.add", "narrow.default"}));
  EXPECT_EQ(captured.shapes->guards().size(), 0U) << captured.shapes->text();
  for (const std::int64_t n : {4, 9}) expect_same(captured, function, {at::randn({n, 6}).requires_grad_()});
}

TEST(CaptureSymbols, ScalarsOfSizes_AreNodes) {
  const Function function = [](const Tensors& x) { return Tensors{x[0].mul(at::Scalar(x[0].sym_size(0)))}; };
  const auto captured = trace(function, {at::randn({4, 6})}, {{0, 0}});
  for (const std::int64_t n : {4, 9}) expect_same(captured, function, {at::randn({n, 6})});
}

TEST(CaptureSymbols, SymbolWithoutItsTensor_IsItsOwnInput) {
  const Function function = [](const Tensors& x) { return Tensors{at::ones_symint({x[0].sym_size(1)})}; };
  const auto captured = trace(function, {at::randn({4, 6})}, {{0, 1}});
  EXPECT_EQ(placeholders(captured), (Names{"s0"}));
  EXPECT_EQ(captured.inputs[0].dim, 1);
  for (const std::int64_t n : {6, 3}) expect_same(captured, function, {at::randn({4, n})});
}

TEST(CaptureSymbols, Integers_AreInputsOfTheirOwn) {
  const auto shapes = shapes::ShapeEnv::make();
  ForwardCapture capture(shapes, {});
  const auto three = capture.add_int("k", 3);
  const auto n = capture.add_int("n", shapes->add_backed_int(5, "n"));
  at::Tensor result;
  capture.run([&] { result = at::ones_symint({n, three}); });
  const auto captured = capture.finish({result, n * 2, three});
  ASSERT_EQ(captured.inputs.size(), 1U);
  EXPECT_EQ(captured.inputs[0].kind, GraphInput::Kind::Int);
  EXPECT_EQ(captured.inputs[0].index, 1U);
  EXPECT_EQ(captured.inputs[0].name, "n");
  const auto results = graph::Interpreter(captured.module).run({7});
  EXPECT_EQ(results[0].toTensor().sizes(), at::IntArrayRef({7, 3}));
  EXPECT_EQ(results[1].toInt(), 14);
  EXPECT_EQ(results[2].toInt(), 3);
}

TEST(CaptureSymbols, EqualSizesShareASymbol) {
  const Function function = [](const Tensors& x) { return Tensors{x[0] + x[1]}; };
  const auto captured = trace(function, {at::randn({4}), at::randn({4})}, {{0, 0}, {1, 0}});
  EXPECT_EQ(placeholders(captured), (Names{"x0", "s0", "x1"}));
}

TEST(CaptureSymbols, Branch_IsAGuardWithTheUsersLine) {
  const Function function = [](const Tensors& x) { return Tensors{x[0].sym_size(0) > 4 ? x[0] + 1 : x[0] - 1}; };
  const auto captured = trace(function, {at::randn({8})}, {{0, 0}});
  ASSERT_EQ(captured.shapes->guards().size(), 1U);
  EXPECT_EQ(captured.shapes->guards()[0].condition.text(), "s0 >= 5");
  EXPECT_TRUE(captured.shapes->guards()[0].where.describe().starts_with("symbols_test.cpp:"));
  EXPECT_TRUE(captured.remarks.empty());
}

TEST(CaptureSymbols, SizeAsAnInt_IsFixedWithTheLine) {
  const Function function = [](const Tensors& x) { return Tensors{x[0].reshape({x[0].size(0) * 2, 3})}; };
  const auto captured = trace(function, {at::randn({8, 6})}, {{0, 0}});
  ASSERT_EQ(captured.remarks.size(), 1U);
  EXPECT_EQ(captured.remarks[0].message, "x0.size(0) is fixed (s0 == 8): C++ code read it as a plain number");
  EXPECT_TRUE(captured.remarks[0].where.describe().starts_with("symbols_test.cpp:"));
}

TEST(CaptureSymbols, Matmuls_AreNotFixedAndHaveEagerSizes) {
  const std::vector<std::pair<Sizes, Sizes>> cases = {
      {{5}, {5}},         {{4, 5}, {5}},       {{5}, {5, 3}},       {{4, 5}, {5, 3}},       {{4, 2, 5}, {5}},
      {{5}, {4, 5, 3}},   {{4, 2, 5}, {5, 3}}, {{2, 5}, {4, 5, 3}}, {{4, 2, 5}, {4, 5, 3}}, {{4, 1, 2, 5}, {7, 5, 3}},
      {{4, 0, 5}, {5, 3}}};
  const Function function = [](const Tensors& x) { return Tensors{at::matmul(x[0], x[1])}; };
  for (const auto& [left, right] : cases) {
    const Tensors inputs = {at::randn(left).requires_grad_(), at::randn(right).requires_grad_()};
    expect_same(trace(function, inputs), function, inputs);
    const auto captured = trace(function, inputs, {{0, 0}});
    EXPECT_TRUE(captured.remarks.empty()) << at::IntArrayRef(left) << " " << at::IntArrayRef(right);
    EXPECT_EQ(targets(captured), (Names{"matmul.default"}));
    const auto* meta = captured.module->graph().last()->prev()->meta().tensor();
    EXPECT_EQ(meta->sizes.size(), static_cast<std::size_t>(at::matmul(inputs[0], inputs[1]).dim()));
    expect_same(captured, function, inputs);
  }
  EXPECT_THROW(trace(function, {at::randn({2, 3}), at::randn({4, 5})}), c10::Error);
}

TEST(CaptureSymbols, Matmul_HasTheStridesOfEagerMode) {
  const Function function = [](const Tensors& x) { return Tensors{at::matmul(x[0], x[1])}; };
  std::vector<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> cases;
  for (const std::int64_t rows : {0, 1, 3}) {
    for (const std::int64_t columns : {0, 1, 2}) {
      for (const std::int64_t batch : {0, 1, 4}) {
        cases.push_back({{rows, 5}, {batch, 5, columns}});
        cases.push_back({{batch, rows, 5}, {5, columns}});
        cases.push_back({{rows, 5}, {2, batch, 5, columns}});
        cases.push_back({{batch, rows, 5}, {batch, 5, columns}});
      }
    }
  }
  for (const auto& [left, right] : cases) {
    for (const int requires_grad : {0, 1, 2, 3}) {
      const Tensors inputs = {at::randn(left).requires_grad_(requires_grad % 2 == 1),
                              at::randn(right).requires_grad_(requires_grad > 1)};
      const auto captured = trace(function, inputs);
      std::vector<std::int64_t> strides;
      for (const auto& stride : captured.module->graph().last()->prev()->meta().tensor()->strides) {
        strides.push_back(stride.number());
      }
      EXPECT_EQ(at::IntArrayRef(strides), at::matmul(inputs[0], inputs[1]).strides())
          << at::IntArrayRef(left) << " " << at::IntArrayRef(right) << " " << requires_grad;
    }
  }
}

TEST(CaptureSymbols, SymItem_IsAnUnbackedSymbolAndEagerlyTheValue) {
  const Function function = [](const Tensors& x) {
    const auto values = sym_tolist(x[1]);
    return Tensors{x[0] * at::Scalar(values[0]), at::ones_symint({values[1]}).sum()};
  };
  const auto captured = trace(function, {at::randn({3}), at::tensor({2, 5}, at::kLong)});
  EXPECT_EQ(captured.shapes->unbacked().size(), 2U);
  const graph::Node& item = node_with(captured, "torch.ops.aten.item.default");
  EXPECT_EQ(item.meta().unbacked_bindings, (Names{"u0"}));
  EXPECT_EQ(item.meta().value->scalar()->expression.text(), "u0");
  expect_same(captured, function, {at::randn({3}), at::tensor({2, 5}, at::kLong)});
  expect_same(captured, function, {at::randn({3}), at::tensor({7, 1}, at::kLong)});
  EXPECT_EQ(sym_item(at::tensor({4}, at::kLong)), 4);
}

TEST(CaptureSymbols, Nonzero_BindsItsNumberOfPlaces) {
  const Function function = [](const Tensors& x) {
    const auto places = x[0].nonzero();
    return Tensors{places + 1, at::ones_symint({places.sym_size(0)})};
  };
  const auto captured = trace(function, {at::tensor({0, 2, 3}, at::kLong)});
  EXPECT_EQ(targets(captured), (Names{"nonzero.default", "add.Scalar", "sym_size.int", "ones.default"}));
  EXPECT_EQ(node_with(captured, "torch.ops.aten.nonzero.default").meta().unbacked_bindings, (Names{"u0"}));
  expect_same(captured, function, {at::tensor({0, 2, 3}, at::kLong)});
  expect_same(captured, function, {at::tensor({0, 0, 0, 1}, at::kLong)});
}

TEST(CaptureSymbols, StatedFacts_AreCheckedByTheGraph) {
  const Function function = [](const Tensors& x) {
    const auto n = sym_item(x[1]);
    TORCH_SYM_CHECK(n.sym_le(x[0].sym_size(0)), "not more than there is");
    return Tensors{n <= x[0].sym_size(0) ? x[0] + 1 : x[0] - 1};
  };
  const auto captured = trace(function, {at::randn({4}), at::tensor(3, at::kLong)}, {{0, 0}});
  EXPECT_EQ(targets(captured), (Names{"item.default", "_operator.mul", "_operator.add", "_operator.le",
                                      "_assert_scalar.default", "add.Scalar"}));
  const graph::Node& check = node_with(captured, "torch.ops.aten._assert_scalar.default");
  EXPECT_EQ(check.args()[1].as<std::string>(), "Runtime assertion failed for expression u0 <= s0");
  EXPECT_TRUE(check.meta().origin->source_line().find("symbols_test.cpp:") != std::string::npos);
  expect_same(captured, function, {at::randn({4}), at::tensor(4, at::kLong)});
  expect_same(captured, function, {at::randn({7}), at::tensor(7, at::kLong)});
  EXPECT_THROW(replay(captured, {at::randn({4}), at::tensor(5, at::kLong)}), std::exception);
}

TEST(CaptureSymbols, BranchOnAnUnbackedSymbol_IsAnError) {
  const Function function = [](const Tensors& x) { return Tensors{sym_item(x[0]) > 3 ? x[0] + 1 : x[0] - 1}; };
  EXPECT_THROW(trace(function, {at::tensor(5, at::kLong)}), shapes::DataDependentError);
}

}  // namespace
}  // namespace rehearse::capture::test
