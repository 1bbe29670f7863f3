// SPDX-License-Identifier: BSD-3-Clause
// partition_joint() cuts a joint graph into forward and backward. As in eager autograd, the forward saves the values
// that the backward uses, and nothing else.
#include <rehearse_internal/capture/joint_partition.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/errors.h>
#include <rehearse/graph/interpreter.h>

#include "bit_equal.h"
#include "core/capture/joint/joint_builder.h"

namespace rehearse::capture {
namespace {

using rehearse::test::BitEqual;
using rehearse_test::JointBuilder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> names_of_inputs(const graph::GraphModule& module) {
  std::vector<std::string> names;
  for (const graph::Node* node : module.graph().placeholders()) names.push_back(node->name());
  return names;
}

std::vector<std::string> targets_of(const graph::GraphModule& module) {
  std::vector<std::string> targets;
  for (const graph::Node& node : module.graph()) {
    if (node.op() == graph::Op::CallFunction) targets.push_back(node.target());
  }
  return targets;
}

// Runs the forward, and then the backward with the values that the forward saved. Returns the joint graph's outputs.
std::vector<c10::IValue> run_both(const JointGraph& joint, const JointPartition& parts,
                                  const std::vector<c10::IValue>& inputs, const std::vector<c10::IValue>& tangents) {
  const at::NoGradGuard no_grad;
  std::vector<c10::IValue> results = graph::Interpreter(parts.forward).run(inputs);
  EXPECT_EQ(results.size(), joint.values + parts.saved_tensors + parts.saved_numbers);
  const auto saved = results.begin() + static_cast<std::ptrdiff_t>(joint.values);
  std::vector<c10::IValue> backward(saved, results.end());
  backward.insert(backward.end(), tangents.begin(), tangents.end());
  results.erase(saved, results.end());
  for (c10::IValue& gradient : graph::Interpreter(parts.backward).run(backward)) results.push_back(gradient);
  return results;
}

TEST(PartitionJoint, ForwardAndBackwardGiveTheJointGraphsResults) {
  const JointGraph joint = rehearse_test::linear_relu();
  const JointPartition parts = partition_joint(joint);
  EXPECT_THAT(names_of_inputs(*parts.forward), ElementsAre("x", "w"));
  EXPECT_THAT(names_of_inputs(*parts.backward), ElementsAre("x", "t_default", "relu_default", "tangent_0"));
  EXPECT_EQ(parts.saved_tensors, 3U);
  EXPECT_EQ(parts.saved_numbers, 0U);
  EXPECT_THAT(parts.gradient_tangents, ElementsAre(ElementsAre(0U), ElementsAre(0U)));
  EXPECT_THAT(targets_of(*parts.forward),
              ElementsAre("torch.ops.aten.t.default", "torch.ops.aten.mm.default", "torch.ops.aten.relu.default"));
  for (const std::int64_t rows : {0, 1, 5}) {
    const at::Tensor x = at::randn({rows, 3});
    const at::Tensor w = at::randn({4, 3});
    const at::Tensor tangent = at::randn({rows, 4});
    const auto whole = graph::Interpreter(joint.module).run({x, w, tangent});
    const auto cut = run_both(joint, parts, {x, w}, {tangent});
    ASSERT_EQ(cut.size(), whole.size());
    for (std::size_t i = 0; i < cut.size(); ++i) EXPECT_THAT(cut[i].toTensor(), BitEqual(whole[i].toTensor())) << i;
  }
}

// The graph computes x * (2 * n) with a symbolic number n. The forward saves 2 * n as a number. Nobody uses the result
// of the exp in the backward, so the forward saves nothing for the exp.
TEST(PartitionJoint, NumbersAreSavedAsNumbersAndDeadCodeSavesNothing) {
  JointBuilder b;
  auto& n = b.size_input("n");
  auto& x = b.input("x");
  auto& tangent = b.tangent(0);
  auto& twice = b.call_number("_operator.mul", {n, 2});
  auto& y = b.call("mul.Scalar", {x, twice});
  b.call("sin.default", {x});
  auto& dead = b.call("exp.default", {y});
  b.begin_backward(dead);
  auto& dx = b.call("mul.Scalar", {tangent, twice});
  const JointGraph joint = b.finish({y}, {{}, dx});
  const JointPartition parts = partition_joint(joint);
  EXPECT_THAT(names_of_inputs(*parts.backward), ElementsAre("mul", "tangent_0"));
  EXPECT_EQ(parts.saved_tensors, 0U);
  EXPECT_EQ(parts.saved_numbers, 1U);
  EXPECT_THAT(parts.gradient_tangents, ElementsAre(IsEmpty(), ElementsAre(0U)));
  EXPECT_THAT(targets_of(*parts.forward), ElementsAre("_operator.mul", "torch.ops.aten.mul.Scalar"));
  const auto results = run_both(joint, parts, {3, at::ones({2, 2})}, {at::ones({2, 2})});
  EXPECT_THAT(results[0].toTensor(), BitEqual(at::full({2, 2}, 6.0)));
  EXPECT_TRUE(results[1].isNone());
  EXPECT_THAT(results[2].toTensor(), BitEqual(at::full({2, 2}, 6.0)));
}

TEST(PartitionJoint, ChangesInPlaceStayInTheForwardInOrder) {
  JointBuilder b;
  auto& x = b.input("x");
  auto& buffer = b.input("buffer");
  auto& tangent = b.tangent(0);
  auto& y = b.call("mul.Tensor", {x, buffer});
  auto& kept = b.call("clone.default", {buffer});
  b.call("add_.Tensor", {buffer, 1});
  auto& dx = b.call("mul.Tensor", {tangent, kept});
  b.begin_backward(dx);
  const JointGraph joint = b.finish({y}, {dx, {}});
  const JointPartition parts = partition_joint(joint);
  EXPECT_THAT(targets_of(*parts.forward),
              ElementsAre("torch.ops.aten.mul.Tensor", "torch.ops.aten.clone.default", "torch.ops.aten.add_.Tensor"));
  const at::Tensor state = at::full({2, 2}, 5.0);
  const auto results = run_both(joint, parts, {at::ones({2, 2}), state}, {at::ones({2, 2})});
  EXPECT_THAT(results[1].toTensor(), BitEqual(at::full({2, 2}, 5.0)));
  EXPECT_THAT(state, BitEqual(at::full({2, 2}, 6.0)));
}

TEST(PartitionJoint, AttributesAreFetchedOnBothSides) {
  JointBuilder b;
  b.joint.module->set_attribute("scale", {.meta = {}, .tensor = at::full({}, 3.0)});
  auto& x = b.input("x");
  auto& tangent = b.tangent(0);
  auto& scale = b.graph().get_attr("scale");
  auto& y = b.call("mul.Tensor", {x, scale});
  auto& dx = b.call("mul.Tensor", {tangent, scale});
  b.begin_backward(dx);
  const JointGraph joint = b.finish({y}, {dx});
  const JointPartition parts = partition_joint(joint);
  EXPECT_EQ(parts.saved_tensors, 0U);
  const auto results = run_both(joint, parts, {at::ones({1, 1})}, {at::ones({1, 1})});
  EXPECT_THAT(results[1].toTensor(), BitEqual(at::full({1, 1}, 3.0)));
}

TEST(PartitionJoint, WithoutTangentsThereIsAForwardAlone) {
  JointBuilder b;
  auto& x = b.input("x");
  b.call("exp.default", {x});
  auto& y = b.call("relu.default", {x});
  const JointPartition parts = partition_joint(b.finish({y}));
  EXPECT_EQ(parts.backward, nullptr);
  EXPECT_THAT(targets_of(*parts.forward), ElementsAre("torch.ops.aten.relu.default"));
  EXPECT_THAT(parts.gradient_tangents, IsEmpty());
}

std::string error_of(const JointGraph& joint) {
  try {
    partition_joint(joint);
  } catch (const graph::GraphError& error) {
    return error.what();
  }
  return "no error";
}

TEST(PartitionJoint, ErrorsNameTheNode) {
  JointGraph unknown = rehearse_test::linear_relu();
  unknown.module->graph().find("t_default")->meta().value = nullptr;
  EXPECT_THAT(error_of(unknown), HasSubstr("t_default"));
  JointGraph short_of_gradients = rehearse_test::linear_relu();
  short_of_gradients.values = 2;
  EXPECT_THAT(error_of(short_of_gradients), HasSubstr("a gradient for each input"));
}

}  // namespace
}  // namespace rehearse::capture
