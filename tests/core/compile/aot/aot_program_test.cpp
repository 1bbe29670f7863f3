// SPDX-License-Identifier: BSD-3-Clause
// A piece runs as one node of autograd. Results, gradients, hooks and errors are those of eager operators, except that
// nobody can differentiate the gradients again.
#include "compile/aot/aot_program.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/libtorch/nodes.h>

#include "bit_equal.h"
#include "core/capture/joint/joint_builder.h"
#include "core/compile/aot/part_check.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using rehearse_test::JointBuilder;
using rehearse_test::leaf;
using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<AotProgram> program_of(const capture::JointGraph& joint, const std::string& name = "forward") {
  return std::make_shared<AotProgram>(joint, capture::partition_joint(joint), name);
}

at::Tensor copy_of(const at::Tensor& tensor) { return tensor.detach().clone().requires_grad_(tensor.requires_grad()); }

TEST(AotProgram, ResultsAndGradientsAreEagers) {
  const auto program = program_of(rehearse_test::linear_relu());
  for (const std::int64_t rows : {0, 1, 7}) {
    const at::Tensor x = leaf({rows, 3}), w = leaf({4, 3});
    const at::Tensor eager_x = copy_of(x), eager_w = copy_of(w);
    for (int step = 0; step < 2; ++step) {  // the second step adds to the gradients of the first
      const at::Tensor y = program->call({x, w})[0].toTensor();
      const at::Tensor eager = eager_x.mm(eager_w.t()).relu();
      EXPECT_THAT(y, BitEqual(eager));
      EXPECT_TRUE(y.requires_grad());
      (y * y).sum().backward();
      (eager * eager).sum().backward();
      EXPECT_THAT(x.grad(), BitEqual(eager_x.grad()));
      EXPECT_THAT(w.grad(), BitEqual(eager_w.grad()));
    }
  }
}

TEST(AotProgram, WithoutGradientsThereIsNoHistory) {
  const auto program = program_of(rehearse_test::linear_relu());
  const at::Tensor x = at::randn({2, 3}), w = leaf({4, 3});
  {
    const at::NoGradGuard no_grad;
    EXPECT_FALSE(program->call({x, w})[0].toTensor().requires_grad());
  }
  EXPECT_FALSE(program->call({x, w.detach()})[0].toTensor().requires_grad());
  EXPECT_TRUE(program->call({x, w})[0].toTensor().requires_grad());
}

// DDP's Reducer sees a piece's gradients when the piece's backward ends, those of the last piece first.
TEST(AotProgram, ParametersGetTheirGradientsWhenTheirPartsBackwardEnds) {
  const auto first = program_of(rehearse_test::linear_relu(), "submod_0");
  const auto second = program_of(rehearse_test::linear_relu(), "submod_1");
  const at::Tensor w0 = leaf({3, 3}), w1 = leaf({3, 3});
  const at::Tensor between = first->call({at::randn({2, 3}), w0})[0].toTensor();
  EXPECT_EQ(between.grad_fn()->name(), "CompiledBackward(submod_0)");
  std::vector<std::string> order;
  w0.register_hook([&](const at::Tensor&) { order.emplace_back("w0"); });
  w1.register_hook([&](const at::Tensor&) { order.emplace_back("w1"); });
  between.register_hook([&](const at::Tensor&) { order.emplace_back("between"); });
  second->call({between, w1})[0].toTensor().sum().backward();
  EXPECT_THAT(order, ElementsAre("w1", "between", "w0"));
}

TEST(AotProgram, TheGraphCanBeKeptAndIsElseGoneAfterOneBackward) {
  const auto program = program_of(rehearse_test::linear_relu());
  const at::Tensor x = leaf({2, 3}), w = leaf({4, 3});
  const at::Tensor y = program->call({x, w})[0].toTensor().sum();
  y.backward({}, /*retain_graph=*/true);
  const at::Tensor once = w.grad().clone();
  y.backward();
  EXPECT_THAT(w.grad(), BitEqual(once + once));
  try {
    y.backward();
    FAIL() << "no error";
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("second time"));
  }
}

TEST(AotProgram, SavedTensorsThatChangedAreRefused) {
  const auto program = program_of(rehearse_test::linear_relu());
  for (const bool change_input : {true, false}) {
    const at::Tensor x = at::randn({2, 3}), w = leaf({4, 3});
    const at::Tensor y = program->call({x, w})[0].toTensor();
    const at::Tensor loss = y.sum();
    (change_input ? x : y.detach()).add_(1);
    try {
      loss.backward();
      FAIL() << "no error";
    } catch (const c10::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("modified by an inplace operation"));
    }
  }
}

TEST(AotProgram, TangentsInOtherStridesGiveTheSameGradients) {
  const auto program = program_of(rehearse_test::linear_relu());
  const at::Tensor x = leaf({2, 3}), w = leaf({4, 3}), tangent = at::randn({4, 2}).t();
  const at::Tensor eager_x = copy_of(x), eager_w = copy_of(w);
  program->call({x, w})[0].toTensor().backward(tangent);
  eager_x.mm(eager_w.t()).relu().backward(tangent);
  EXPECT_THAT(x.grad(), BitEqual(eager_x.grad()));
  EXPECT_THAT(w.grad(), BitEqual(eager_w.grad()));
}

// A graph with two results: exp(x), which the backward uses, and a * c.
capture::JointGraph two_results() {
  JointBuilder b;
  auto& x = b.input("x");
  auto& a = b.input("a");
  auto& c = b.input("c");
  auto& tangent0 = b.tangent(0);
  auto& tangent1 = b.tangent(1);
  auto& y = b.call("exp.default", {x});
  auto& z = b.call("mul.Tensor", {a, c});
  auto& dx = b.call("mul.Tensor", {tangent0, y});
  b.begin_backward(dx);
  auto& da = b.call("mul.Tensor", {tangent1, c});
  return b.finish({y, z}, {dx, da, {}});
}

TEST(AotProgram, ResultsWithoutABackwardLeaveGradientsUndefined) {
  const auto program = program_of(two_results());
  const at::Tensor x = leaf({2, 2}), a = leaf({2, 2}), c = at::randn({2, 2});
  program->call({x, a, c})[0].toTensor().sum().backward();
  EXPECT_THAT(x.grad(), BitEqual(x.exp()));
  EXPECT_FALSE(a.grad().defined());
  const auto both = program->call({x, a, c});
  x.mutable_grad().reset();
  (both[0].toTensor().sum() + both[1].toTensor().sum()).backward();
  EXPECT_THAT(x.grad(), BitEqual(x.exp()));
  EXPECT_THAT(a.grad(), BitEqual(c));
}

TEST(AotProgram, AResultThatIsSavedKeepsNoCycle) {
  const auto program = program_of(two_results());
  c10::weak_intrusive_ptr<c10::TensorImpl> gone(at::empty({0}).getIntrusivePtr());
  {
    const at::Tensor x = leaf({2, 2}), a = leaf({2, 2});
    const auto results = program->call({x, a, a.detach()});
    gone = results[0].toTensor().getIntrusivePtr();
  }
  EXPECT_TRUE(gone.expired());
}

TEST(AotProgram, ANodeWithoutOwnersKeepsNothingForThoseWhoWatchIt) {
  const auto program = program_of(two_results());
  const at::Tensor a = leaf({2, 2});
  at::Tensor c = at::randn({2, 2}), z = program->call({leaf({2, 2}), a, c})[1].toTensor();
  const libtorch::WeakNodePtr watched(z.grad_fn());
  const c10::weak_intrusive_ptr<c10::StorageImpl> saved(c.storage().getWeakStorageImpl());
  c.reset();
  EXPECT_FALSE(saved.expired());
  z.reset();
  EXPECT_TRUE(watched.expired());
  EXPECT_TRUE(saved.expired());
}

TEST(AotProgram, GradientsCannotBeDifferentiatedAgain) {
  const auto program = program_of(rehearse_test::linear_relu());
  const at::Tensor x = leaf({2, 3}), w = leaf({4, 3});
  const at::Tensor y = program->call({x, w})[0].toTensor();
  const auto gradients = torch::autograd::grad({y.sum()}, {w}, {}, true, /*create_graph=*/true);
  EXPECT_EQ(gradients[0].sizes(), w.sizes());
  try {
    gradients[0].sum().backward();
    FAIL() << "no error";
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot be differentiated again"));
  }
}

// The graph changes x in place, and x has a history. The caller's tensor gets the new contents, and the piece's node as
// its history.
TEST(AotProgram, DifferentiatedInputsThatChangeAreWrittenUnderAutograd) {
  JointBuilder b;
  auto& x = b.input("x");
  auto& tangent = b.tangent(0);
  auto& changed = b.call("mul_.Scalar", {x, 3});
  auto& dx = b.call("mul.Scalar", {tangent, 3});
  b.begin_backward(dx);
  capture::JointGraph joint = b.finish({changed}, {dx});
  joint.changed_inputs = {{0, 0}};
  joint.outputs = {{capture::GraphOutput::Kind::Input, 0}};
  const auto program = program_of(joint);
  const at::Tensor start = leaf({2, 2});
  const at::Tensor x_now = start * 1;
  const auto version = x_now._version();
  const at::Tensor y = program->call({x_now})[0].toTensor();
  EXPECT_TRUE(y.is_same(x_now));
  EXPECT_EQ(x_now._version(), version + 1);
  EXPECT_THAT(x_now, BitEqual(start.detach() * 3));
  x_now.sum().backward();
  EXPECT_THAT(start.grad(), BitEqual(at::full({2, 2}, 3.0)));
}

TEST(AotProgram, BuffersChangeInPlaceAndTheirVersionsMove) {
  JointBuilder b;
  auto& x = b.input("x");
  auto& count = b.input("count");
  auto& y = b.call("mul.Scalar", {x, 2});
  b.call("add_.Tensor", {count, 1});
  const auto program = program_of(b.finish({y}));
  const at::Tensor count_now = at::zeros({}, at::kLong);
  const auto version = count_now._version();
  program->call({at::ones({2}), count_now});
  program->call({at::ones({2}), count_now});
  EXPECT_EQ(count_now.item<std::int64_t>(), 2);
  EXPECT_EQ(count_now._version(), version + 2);
}

TEST(AotProgram, ViewsOfInputsAreMadeUnderAutograd) {
  JointBuilder b;
  auto& x = b.input("x");
  auto& tangent = b.tangent(0);
  auto& y = b.call("exp.default", {x});
  auto& dx = b.call("mul.Tensor", {tangent, y});
  b.begin_backward(dx);
  capture::JointGraph joint = b.finish({y}, {dx});
  joint.views = std::make_shared<graph::GraphModule>();
  auto& base = joint.views->graph().placeholder("x");
  auto& value = joint.views->graph().placeholder("y");
  auto& view = joint.views->graph().call_function("torch.ops.aten.t.default", {base});
  auto& flat = joint.views->graph().call_function("torch.ops.aten.view.default", {value, graph::List{-1}});
  joint.views->graph().output(graph::List{view, flat});
  joint.outputs = {{capture::GraphOutput::Kind::View, 0}, {capture::GraphOutput::Kind::View, 1}};
  const at::Tensor start = leaf({2, 3});
  const auto results = program_of(joint)->call({start});
  EXPECT_TRUE(results[0].toTensor()._base().is_same(start));
  EXPECT_EQ(results[1].toTensor().sizes(), at::IntArrayRef({6}));
  (results[0].toTensor().sum() + results[1].toTensor().sum()).backward();
  EXPECT_THAT(start.grad(), BitEqual(start.exp() + 1));
}

}  // namespace
}  // namespace rehearse::compiler
