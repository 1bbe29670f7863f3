// SPDX-License-Identifier: BSD-3-Clause
// User code throws in a call that captures. The effects of the code before the exception happen once, as in eager mode.
#include <functional>
#include <stdexcept>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/eager_region.h>

namespace rehearse::compiler {
namespace {

struct State {
  at::Tensor total = at::zeros({3});
  at::Tensor weight = at::ones({3}).requires_grad_();
  bool throws = true;
};

using Throwing = std::function<at::Tensor(const at::Tensor&)>;

Throwing straight(State& state) {
  return [&state](const at::Tensor& x) {
    x.mul_(2);
    {
      const at::NoGradGuard no_grad;
      state.weight.add_(x);
      state.total.add_(at::rand({3}));
      if (state.throws) throw std::invalid_argument("not now");
    }
    return x * state.weight + state.total;
  };
}

Throwing behind_a_read(State& state) {
  return [&state](const at::Tensor& x) {
    x.mul_(2);
    const bool large = x.sum().item<float>() > 10;
    state.total.add_(large ? x : x * at::rand({3}));
    if (state.throws) throw std::invalid_argument("not now");
    return x + state.total;
  };
}

Throwing behind_a_region(State& state) {
  return [&state](const at::Tensor& x) {
    const at::Tensor y = eager_region([](const at::Tensor& t) { return t + 1; }, x.mul_(3));
    state.total.add_(y);
    if (state.throws) throw std::invalid_argument("not now");
    return x + state.total;
  };
}

// An operator throws. The capture knows of the error before the operator runs.
Throwing by_an_operator(State& state) {
  return [&state](const at::Tensor& x) {
    state.total.add_(x);
    return state.throws ? x + at::ones({7}) : x + state.total;
  };
}

void expect_as_eager(const std::function<Throwing(State&)>& make, CompileOptions options) {
  State mine, theirs;
  auto compiled = compile(make(mine), std::move(options));
  const Throwing eager = make(theirs);
  std::uint64_t seed = 0;
  for (const bool throws : {true, false, true, false, false}) {
    for (const float value : {1.F, 9.F}) {
      mine.throws = theirs.throws = throws;
      const at::Tensor x = at::full({3}, value), x_eager = x.clone();
      const auto outcome = [&](const auto& call, const at::Tensor& input) {
        at::manual_seed(seed);
        try {
          return call(input).detach().clone();
        } catch (const std::exception&) {
          return at::Tensor();
        }
      };
      const at::Tensor found = outcome([&](const at::Tensor& input) { return compiled(input); }, x);
      const at::Tensor expected = outcome(eager, x_eager);
      ++seed;
      ASSERT_EQ(found.defined(), expected.defined());
      EXPECT_EQ(expected.defined(), !throws);
      if (expected.defined()) {
        EXPECT_TRUE(found.equal(expected));
      }
      EXPECT_TRUE(x.equal(x_eager));
      EXPECT_TRUE(mine.total.equal(theirs.total));
      EXPECT_TRUE(mine.weight.equal(theirs.weight));
    }
  }
}

TEST(Thrown, WhatWasDoneBeforeIsDone) {
  for (const auto& make : {straight, behind_a_read, behind_a_region, by_an_operator}) {
    expect_as_eager(make, {.verify = Verify::Always});
  }
  expect_as_eager(straight, {.fullgraph = true, .verify = Verify::Always});
}

}  // namespace
}  // namespace rehearse::compiler
