// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "compile/guards/guard_set.h"

namespace rehearse::compiler {
namespace {

std::string failure_of(const TensorGuard& guard, const at::Tensor& tensor) {
  GuardFailure failure;
  const bool holds = guard.holds(tensor, &failure);
  EXPECT_EQ(holds, guard.holds(tensor));
  return holds ? "" : text_of(failure);
}

// The guard compares a tensor's dtype, device, sizes, strides and requires_grad, but not its data or its storage
// offset.
TEST(TensorGuard, HoldsForATensorOfTheSameKind) {
  const TensorGuard guard(at::ones({4, 8}), "x");
  EXPECT_EQ(failure_of(guard, at::zeros({4, 8})), "");
  EXPECT_EQ(failure_of(guard, at::ones({8, 8}).slice(0, 2, 6)), "");
  EXPECT_EQ(failure_of(guard, at::ones({5, 8})), "x.size(0): expected 4, found 5");
  EXPECT_EQ(failure_of(guard, at::ones({4, 9})), "x.size(1): expected 8, found 9");
  EXPECT_EQ(failure_of(guard, at::ones({4})), "x.dim(): expected 2, found 1");
  EXPECT_EQ(failure_of(guard, at::ones({8, 4}).t()), "x.stride(0): expected 8, found 1");
  EXPECT_EQ(failure_of(guard, at::ones({4, 8}, at::kDouble)), "x.dtype: expected Float, found Double");
  EXPECT_EQ(failure_of(guard, at::ones({4, 8}).requires_grad_()), "x.requires_grad: expected false, found true");
  EXPECT_EQ(failure_of(guard, at::Tensor()), "x: expected a tensor, found none");
}

// The guard ignores dynamic sizes. If a stride followed from the sizes at capture, it must follow from the sizes of the
// call. Other strides must stay as they were.
TEST(TensorGuard, StridesFollowSizesThatVary) {
  const TensorGuard contiguous(at::ones({4, 8}), "x", {true, true});
  EXPECT_EQ(failure_of(contiguous, at::ones({5, 9})), "");
  EXPECT_EQ(failure_of(contiguous, at::ones({9, 5}).t()), "x.stride(0): expected 45, found 1");
  const TensorGuard transposed(at::ones({8, 4}).t(), "x", {true, true});
  EXPECT_EQ(failure_of(transposed, at::ones({9, 5}).t()), "");
  const TensorGuard sliced(at::ones({4, 16}).slice(1, 0, 8), "x", {true, false});
  EXPECT_EQ(failure_of(sliced, at::ones({7, 16}).slice(1, 0, 8)), "");
  EXPECT_EQ(failure_of(sliced, at::ones({7, 8})), "x.stride(0): expected 16, found 8");
}

// If the graph only passes a tensor on, the guard allows any sizes, but no other number of dimensions.
TEST(TensorGuard, SizesOfNoInterestAreNotGuarded) {
  TensorGuard guard(at::ones({4}), "x");
  guard.ignore_layout();
  EXPECT_EQ(failure_of(guard, at::ones({9})), "");
  EXPECT_EQ(failure_of(guard, at::ones({9, 9})), "x.dim(): expected 1, found 2");
}

// A view requires a gradient if its base does. Code may switch on the base's requires_grad after it has made the view.
TEST(TensorGuard, AViewIsAskedByWayOfItsBase) {
  const at::Tensor base = at::ones({4, 8});
  const at::Tensor view = base.view({8, 4});
  const TensorGuard guard(view, "x");
  EXPECT_EQ(failure_of(guard, view), "");
  base.requires_grad_();
  ASSERT_TRUE(view.requires_grad());
  EXPECT_EQ(failure_of(guard, view), "x.requires_grad: expected false, found true");
  EXPECT_EQ(failure_of(TensorGuard(view, "x"), view), "");
}

// first_doubtful() returns the first guard that needs a full check. A caller then continues with the next guard.
TEST(TensorGuard, OfManyTheDoubtfulAreFoundInOrder) {
  std::vector<at::Tensor> tensors;
  std::vector<TensorGuard> guards;
  for (int i = 0; i < 12; ++i) {
    tensors.push_back(at::ones({4, i + 1}));
    guards.emplace_back(tensors.back(), "x");
  }
  EXPECT_EQ(TensorGuard::first_doubtful(guards, tensors, 0), 12U);
  tensors[3] = at::ones({4, 9});
  guards[11].ignore_layout();
  EXPECT_EQ(TensorGuard::first_doubtful(guards, tensors, 0), 3U);
  EXPECT_EQ(TensorGuard::first_doubtful(guards, tensors, 4), 11U);
  EXPECT_EQ(TensorGuard::first_doubtful(guards, tensors, 12), 12U);
}

TEST(TensorGuard, EmptyAndScalarTensorsAreThemselves) {
  EXPECT_EQ(failure_of(TensorGuard(at::ones({}), "x"), at::zeros({})), "");
  EXPECT_EQ(failure_of(TensorGuard(at::ones({0, 3}), "x"), at::ones({0, 3})), "");
  EXPECT_EQ(failure_of(TensorGuard(at::ones({0, 3}), "x"), at::ones({1, 3})), "x.size(0): expected 0, found 1");
}

struct Leaves {
  explicit Leaves(std::vector<at::Tensor> tensors) : tensors_(std::move(tensors)) {
    for (const at::Tensor& tensor : tensors_) list.push_back(Leaf::of(tensor));
  }
  std::vector<at::Tensor> tensors_;
  LeafList list;
};

GuardSet guards_of(const Leaves& leaves) {
  GuardSet guards;
  for (std::size_t i = 0; i < leaves.list.size(); ++i) {
    guards.add_tensor(TensorGuard(leaves.tensors_[i], "x" + std::to_string(i)));
  }
  guards.set_state(GlobalState::current());
  guards.set_aliases(leaves.list);
  return guards;
}

std::string failure_of(const GuardSet& guards, const LeafList& leaves) {
  GuardFailure failure;
  const bool holds = guards.holds(leaves, GlobalState::current(), &failure);
  EXPECT_EQ(holds, guards.holds(leaves, GlobalState::current()));
  return holds ? "" : text_of(failure);
}

TEST(GuardSet, OneTensorTwiceIsAnotherCallThanTwoTensors) {
  const at::Tensor x = at::ones({3}), y = at::ones({3});
  EXPECT_EQ(failure_of(guards_of(Leaves({x, x})), Leaves({y, y}).list), "");
  EXPECT_EQ(failure_of(guards_of(Leaves({x, x})), Leaves({x, y}).list),
            "x1: expected the tensor x0, found a tensor of its own");
  EXPECT_EQ(failure_of(guards_of(Leaves({x, y})), Leaves({x, x}).list),
            "x1: expected a tensor of its own, found the tensor x0");
}

// If an argument was a parameter at capture, later calls must pass the same parameter.
TEST(GuardSet, AnArgumentThatIsAParameterStaysIt) {
  const at::Tensor weight = at::ones({3});
  const Leaves same({weight});
  GuardSet guards;
  guards.add_tensor(TensorGuard(weight, "x"));
  guards.add_captured(weight, TensorGuard(weight, "weight"));
  guards.set_state(GlobalState::current());
  guards.set_aliases(same.list);
  EXPECT_EQ(failure_of(guards, same.list), "");
  EXPECT_EQ(failure_of(guards, Leaves({at::ones({3})}).list),
            "x: expected the tensor weight, found a tensor of its own");
}

TEST(GuardSet, ValuesAndKindsAreCompared) {
  const std::string mean = "mean", sum = "sum";
  LeafList leaves{Leaf::of(LeafKind::Int, 3), Leaf::of(mean), Leaf::of(2.5)};
  GuardSet guards;
  for (const Leaf& leaf : leaves) guards.add_value(leaf, "k");
  EXPECT_EQ(failure_of(guards, leaves), "");
  EXPECT_EQ(failure_of(guards, {Leaf::of(LeafKind::Int, 4), Leaf::of(mean), Leaf::of(2.5)}), "k: expected 3, found 4");
  EXPECT_EQ(failure_of(guards, {Leaf::of(LeafKind::Int, 3), Leaf::of(sum), Leaf::of(2.5)}),
            "k: expected 'mean', found 'sum'");
  EXPECT_EQ(failure_of(guards, {Leaf::of(LeafKind::Int, 3), Leaf::of(mean), Leaf::of(LeafKind::Bool, 1)}),
            "k: expected double, found bool");
  EXPECT_EQ(failure_of(guards, {Leaf::of(LeafKind::Int, 3), Leaf::of(mean)}),
            "arguments: expected 3 values, found 2 values");
}

TEST(GuardSet, GlobalStateIsCompared) {
  const GuardSet guards = guards_of(Leaves({at::ones({2})}));
  const Leaves leaves({at::ones({2})});
  {
    const at::NoGradGuard no_grad;
    EXPECT_EQ(failure_of(guards, leaves.list), "grad mode: expected on, found off");
  }
  at::autocast::set_autocast_enabled(at::kCPU, true);
  EXPECT_EQ(failure_of(guards, leaves.list), "autocast on CPU: expected off, found on");
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::globalContext().setDeterministicAlgorithms(true, false);
  EXPECT_EQ(failure_of(guards, leaves.list), "deterministic algorithms: expected off, found on");
  at::globalContext().setDeterministicAlgorithms(false, false);
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(at::kDouble));
  EXPECT_EQ(failure_of(guards, leaves.list), "default dtype: expected Float, found Double");
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(at::kFloat));
  EXPECT_EQ(failure_of(guards, leaves.list), "");
}

TEST(GuardSet, TrainingModesAreCompared) {
  torch::nn::Sequential net(torch::nn::Linear(2, 2), torch::nn::Linear(2, 2));
  GuardSet guards;
  guards.set_modules(ModuleGuard(net.ptr()));
  EXPECT_EQ(failure_of(guards, {}), "");
  net[1]->as<torch::nn::Linear>()->eval();
  EXPECT_EQ(failure_of(guards, {}), "1.is_training(): expected true, found false");
  net->train();
  EXPECT_EQ(failure_of(guards, {}), "");
}

}  // namespace
}  // namespace rehearse::compiler
