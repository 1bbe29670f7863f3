// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "models/toy.h"
#include "traced.h"

namespace rehearse::capture::test {
namespace {

const std::string kSetGrad = "torch._C._set_grad_enabled";
const std::string kEnter = "torch.amp.autocast_mode._enter_autocast";
const std::string kExit = "torch.amp.autocast_mode._exit_autocast";

// Turns autocast on or off as C++ programs do.
class Autocast {
 public:
  explicit Autocast(bool enabled, at::ScalarType dtype = at::kBFloat16)
      : was_(at::autocast::is_autocast_enabled(at::kCPU)), dtype_(at::autocast::get_autocast_dtype(at::kCPU)) {
    at::autocast::increment_nesting();
    at::autocast::set_autocast_enabled(at::kCPU, enabled);
    at::autocast::set_autocast_dtype(at::kCPU, dtype);
  }
  ~Autocast() {
    at::autocast::set_autocast_enabled(at::kCPU, was_);
    at::autocast::set_autocast_dtype(at::kCPU, dtype_);
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool was_;
  at::ScalarType dtype_;
};

TEST(CaptureModes, GradRegions_AreNodesWhereTheyBeginAndEnd) {
  const Function function = [](const Tensors& x) {
    const auto before = x[0] * 2;
    at::Tensor within;
    {
      const at::NoGradGuard no_grad;
      within = before * 3;
    }
    return Tensors{within, before + within};
  };
  const Tensors inputs = {at::randn({3}).requires_grad_()};
  const auto captured = trace(function, inputs);
  EXPECT_EQ(targets(captured), (Names{"mul.Scalar", kSetGrad, "mul.Scalar", kSetGrad, "add.Tensor"}));
  expect_same(captured, function, inputs);
}

TEST(CaptureModes, RegionAtTheEnd_IsLeft) {
  const Function function = [](const Tensors& x) {
    const at::NoGradGuard no_grad;
    return Tensors{x[0] * 2};
  };
  const auto captured = trace(function, {at::randn({3}).requires_grad_()});
  EXPECT_EQ(targets(captured), (Names{kSetGrad, "mul.Scalar", kSetGrad}));
}

TEST(CaptureModes, RegionWithoutOperators_IsNothing) {
  const auto captured = trace(
      [](const Tensors& x) {
        {
          const at::NoGradGuard no_grad;
        }
        return Tensors{x[0] * 2};
      },
      {at::randn({3})});
  EXPECT_EQ(targets(captured), (Names{"mul.Scalar"}));
}

TEST(CaptureModes, Autocast_CastsAtReplayAndLeavesNoFakeInItsCache) {
  rehearse::test::Toy toy(rehearse::test::ToyShape{4, 6, 3});
  const Function function = [&](const Tensors& x) {
    const Autocast on(true);
    auto inner = toy->forward(x[0]);
    const Autocast off(false);
    return Tensors{inner, inner.to(at::kFloat) * 2};
  };
  const Tensors inputs = {at::randn({5, 4})};
  const auto captured = [&] {
    const Autocast outside(false);  // LibTorch keeps autocast's cache as long as any region is open
    auto made = trace(function, inputs, {}, named_tensors(*toy));
    expect_same(made, function, inputs, toy->parameters());
    return made;
  }();
  const Names found = targets(captured);
  EXPECT_EQ(std::count(found.begin(), found.end(), kEnter), 1);
  EXPECT_EQ(std::count(found.begin(), found.end(), kExit), 1);
  expect_same(captured, function, inputs, toy->parameters());
}

TEST(CaptureModes, AutocastOfMatmuls_GivesTheLowerDtype) {
  const Function function = [](const Tensors& x) {
    const Autocast on(true);
    return Tensors{at::matmul(x[0], x[1]), at::linear(x[0], x[1])};
  };
  const Tensors inputs = {at::randn({2, 3, 4, 4}).requires_grad_(), at::randn({4, 4}).requires_grad_()};
  const auto captured = trace(function, inputs);
  expect_same(captured, function, inputs);
}

TEST(CaptureModes, NestedAutocast_IsLeftRegionByRegion) {
  const Function function = [](const Tensors& x) {
    const Autocast outer(true);
    const auto a = at::mm(x[0], x[0]);
    at::Tensor b;
    {
      const Autocast inner(true, at::kHalf);
      b = at::mm(x[0], x[0]);
    }
    return Tensors{a, b, at::mm(x[0], x[0])};
  };
  const Tensors inputs = {at::randn({4, 4})};
  const auto captured = trace(function, inputs);
  EXPECT_EQ(targets(captured), (Names{kEnter, "mm.default", kEnter, "mm.default", kExit, "mm.default", kExit}));
  expect_same(captured, function, inputs);
}

}  // namespace
}  // namespace rehearse::capture::test
