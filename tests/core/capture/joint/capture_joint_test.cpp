// SPDX-License-Identifier: BSD-3-Clause
// A joint capture changes neither the examples nor the graph's constants, and makes no calls on groups. It refuses
// examples and graphs that it cannot capture.
#include <functional>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/errors.h>
#include <rehearse/graph/interpreter.h>
#include <rehearse/graph/text.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/capture/joint_partition.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "bit_equal.h"

namespace rehearse::capture {
namespace {

using rehearse::test::BitEqual;
using testing::HasSubstr;

std::shared_ptr<graph::GraphModule> module_of(const std::function<graph::Argument(graph::Graph&)>& build) {
  auto module = std::make_shared<graph::GraphModule>();
  graph::List outputs{build(module->graph())};
  module->graph().output(std::move(outputs));
  return module;
}

at::Tensor fake_like(const at::Tensor& tensor) { return make_fake(spec_of(tensor)); }

JointGraph capture(const std::shared_ptr<graph::GraphModule>& module, const std::vector<c10::IValue>& examples) {
  return capture_joint(module, examples, shapes::ShapeEnv::make());
}

std::string error_of(const std::shared_ptr<graph::GraphModule>& module, const std::vector<c10::IValue>& examples) {
  try {
    capture(module, examples);
  } catch (const graph::GraphError& error) {
    return error.what();
  }
  return "no error";
}

std::shared_ptr<graph::GraphModule> exp_of_x() {
  return module_of([](graph::Graph& graph) -> graph::Argument {
    return graph.call_function("torch.ops.aten.exp.default", {graph.placeholder("x")});
  });
}

TEST(CaptureJoint, ExamplesAreFakesOneForEachPlaceholder) {
  EXPECT_THAT(error_of(exp_of_x(), {}), HasSubstr("there must be 1"));
  EXPECT_THAT(error_of(exp_of_x(), {at::ones({2})}), HasSubstr("must be a fake one"));
  EXPECT_THAT(error_of(nullptr, {}), HasSubstr("null"));
}

TEST(CaptureJoint, CollectivesAreNodesAndSendNothing) {
  const auto module = module_of([](graph::Graph& graph) -> graph::Argument {
    const auto call = [&](const char* name, graph::List arguments) -> graph::Node& {
      return graph.call_function("torch.ops._c10d_functional." + std::string(name) + ".default", std::move(arguments));
    };
    graph::Node& gathered = call("all_gather_into_tensor", {graph.placeholder("x"), 4, "no such group"});
    return call("wait_tensor", {gathered});
  });
  const JointGraph joint = capture(module, {fake_like(at::ones({2, 3}))});
  const graph::Node* wait = joint.module->graph().output_node()->prev();
  EXPECT_EQ(wait->target(), "torch.ops._c10d_functional.wait_tensor.default");
  EXPECT_EQ(wait->meta().tensor()->sizes, (std::vector<graph::SymInt>{8, 3}));
  EXPECT_EQ(wait->prev()->target(), "torch.ops._c10d_functional.all_gather_into_tensor.default");
}

TEST(CaptureJoint, ExamplesStayAsTheyAre) {
  const auto module = module_of([](graph::Graph& graph) -> graph::Argument {
    return graph.call_function("torch.ops.aten.relu_.default", {graph.placeholder("x")});
  });
  const at::Tensor example = fake_like(at::ones({2}).requires_grad_());
  const auto version = example._version();
  const JointGraph joint = capture(module, {example});
  EXPECT_EQ(example._version(), version);
  EXPECT_EQ(example.grad_fn(), nullptr);
  EXPECT_EQ(joint.changed_inputs.size(), 1U);
}

TEST(CaptureJoint, ChangingWhatSharesItsMemoryIsRefused) {
  const auto module = module_of([](graph::Graph& graph) -> graph::Argument {
    graph::Node& x = graph.placeholder("x");
    graph.placeholder("row");
    return graph.call_function("torch.ops.aten.relu_.default", {x});
  });
  const at::Tensor x = fake_like(at::ones({2, 3}).requires_grad_());
  EXPECT_THAT(error_of(module, {x, make_fake(spec_of(at::ones({3})), x)}), HasSubstr("shares its memory with"));
}

TEST(CaptureJoint, AttributesAreConstantsOnBothSides) {
  const at::Tensor scale = at::full({2}, 3.0);
  auto module = module_of([](graph::Graph& graph) -> graph::Argument {
    graph::Node& x = graph.placeholder("x");
    return graph.call_function("torch.ops.aten.mul.Tensor", {x, graph.get_attr("scale")});
  });
  module->set_attribute("scale", {.meta = {}, .tensor = scale});
  const JointGraph joint = capture(module, {fake_like(at::ones({2}).requires_grad_())});
  const auto results = graph::Interpreter(joint.module).run({at::full({2}, 2.0), at::ones({2})});
  EXPECT_THAT(results[0].toTensor(), BitEqual(at::full({2}, 6.0)));
  EXPECT_THAT(results[1].toTensor(), BitEqual(scale));
  EXPECT_EQ(scale._version(), at::full({2}, 3.0)._version());

  module->set_attribute("scale", {.meta = {}, .tensor = at::ones({2}).requires_grad_()});
  EXPECT_THAT(error_of(module, {fake_like(at::ones({2}))}), HasSubstr("must be an input of the graph"));
}

TEST(CaptureJoint, IsTheSameEachTime) {
  const std::vector<c10::IValue> examples{fake_like(at::ones({2}).requires_grad_())};
  const JointGraph joint = capture(exp_of_x(), examples), again = capture(exp_of_x(), examples);
  EXPECT_EQ(graph::to_text(*joint.module), graph::to_text(*again.module));
  EXPECT_THAT(graph::to_text(*joint.module), HasSubstr("torch.ops.aten.exp.default"));
}

TEST(CaptureJoint, RecordsForTheTangentsThatAreWanted) {
  const auto module = module_of([](graph::Graph& graph) -> graph::Argument {
    return graph.call_function("torch.ops.aten.sin.default", {graph.placeholder("x")});
  });
  const std::vector<c10::IValue> examples{fake_like(at::ones({2, 3}).requires_grad_())};
  const std::vector<Tangent> transposed{{0, {.dim_order = {1, 0}}}};
  const JointGraph joint = capture_joint(module, examples, nullptr, &transposed);
  const graph::Node* tangent = joint.module->graph().placeholders().back();
  EXPECT_EQ(tangent->meta().tensor()->strides, (std::vector<graph::SymInt>{1, 2}));
  EXPECT_EQ(joint.tangents, transposed);
}

}  // namespace
}  // namespace rehearse::capture
