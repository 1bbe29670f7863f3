// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/capture/opaque.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <rehearse/comm/functional.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/capture/fake_tensor.h>

#include "bit_equal.h"
#include "opaque_elsewhere.h"
#include "traced.h"

namespace rehearse::capture::test {
namespace {

using rehearse::test::BitEqual;

// The backward differs from the derivative of the forward, so that the test can tell whether this backward ran.
struct TenfoldGradient : torch::autograd::Function<TenfoldGradient> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x * x; }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list grads) {
    return {grads[0] * 10};
  }
};

TEST(CaptureOpaque, CustomFunction_IsOneNodeWithItsOwnGradient) {
  const Function function = [](const Tensors& x) {
    const auto y = opaque([](const at::Tensor& in) { return TenfoldGradient::apply(in + 1); }, x[0] * 2);
    return Tensors{y * 3};
  };
  const Tensors inputs = {at::randn({3}).requires_grad_()};
  const auto captured = trace(function, inputs);
  EXPECT_EQ(targets(captured),
            (Names{"mul.Scalar", "torch.ops.rehearse.opaque.default", "_operator.getitem", "mul.Scalar"}));
  expect_same(captured, function, inputs);
  EXPECT_THAT(gradients(replay(captured, inputs), inputs)[0], BitEqual(at::full({3}, 60.0)));
}

TEST(CaptureOpaque, HooksAndSeveralResults) {
  const Function function = [](const Tensors& x) {
    return opaque(
        [](const at::Tensor& a, const at::Tensor& b) {
          const auto sum = a + b;
          if (sum.requires_grad()) sum.register_hook([](const at::Tensor& grad) { return grad * 7; });
          return std::vector<at::Tensor>{sum, a > 0};
        },
        x[0], x[1]);
  };
  const Tensors inputs = {at::randn({3}).requires_grad_(), at::randn({3})};
  const auto captured = trace(function, inputs);
  expect_same(captured, function, inputs);
  EXPECT_THAT(gradients(replay(captured, inputs), {inputs[0]})[0], BitEqual(at::full({3}, 7.0)));
}

// opaque_elsewhere.cpp has a function of the same name, so the types of the two lambdas have one name.
at::Tensor scaled(const at::Tensor& x) {
  return opaque([](const at::Tensor& in) { return in * 2; }, x);
}

TEST(CaptureOpaque, FunctionsOfOneNameInTwoFilesAreTwoFunctions) {
  const Function function = [](const Tensors& x) { return Tensors{scaled(x[0]), scaled_elsewhere(x[0])}; };
  const Tensors inputs = {at::ones({3})};
  for (const Tensors& results : {function(inputs), replay(trace(function, inputs), inputs)}) {
    EXPECT_THAT(results[0], BitEqual(at::full({3}, 2.0)));
    EXPECT_THAT(results[1], BitEqual(at::full({3}, 5.0)));
  }
}

TEST(CaptureOpaque, AGenericFunctionIsOneFunctionForEachNumberOfTensors) {
  const Function function = [](const Tensors& x) {
    const auto sum = [](const auto&... each) { return (each + ...) * 2; };
    return Tensors{opaque(sum, x[0]), opaque(sum, x[0], x[1])};
  };
  const Tensors inputs = {at::ones({3}), at::full({3}, 4.0)};
  const auto captured = trace(function, inputs);
  EXPECT_THAT(replay(captured, inputs)[0], BitEqual(at::full({3}, 2.0)));
  EXPECT_THAT(replay(captured, inputs)[1], BitEqual(at::full({3}, 10.0)));
}

TEST(CaptureCollectives, AreNodesThatSendWhenTheGraphRuns) {
  World world({.ranks = 2, .seed = 1});
  const Report report = world.run([](RankContext& ctx) {
    const auto group = ctx.group().get();
    const Function function = [&](const Tensors& x) {
      return Tensors{functional::all_reduce(x[0] * 2, group), functional::all_gather_tensor(x[0], group),
                     functional::reduce_scatter_tensor(x[0], group)};
    };
    const Tensors inputs = {at::ones({4, 3}) * (ctx.rank() + 1)};
    // Rank 1 captures another graph, with a symbolic size. A capture must neither send nor wait for other ranks.
    const auto captured = ctx.rank() == 1 ? trace(function, inputs, {{0, 1}}) : trace(function, inputs);
    const Tensors results = replay(captured, inputs);
    EXPECT_THAT(results[0], BitEqual(at::full({4, 3}, 6.0)));
    EXPECT_THAT(results[1], BitEqual(at::cat({at::ones({4, 3}), at::full({4, 3}, 2.0)})));
    EXPECT_THAT(results[2], BitEqual(at::full({2, 3}, 3.0)));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

struct Told : FakeListener {
  at::Tensor fake_of(const at::Tensor& real) override { return make_fake(spec_of(real)); }
  void on_operator(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue>,
                   c10::ArrayRef<c10::IValue> results) override {
    names.push_back(op.schema().name());
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].toTensor().sizes(), at::IntArrayRef({4, 3}));
  }
  Names names;
};

TEST(CaptureCollectives, BelowAutograd_TheListenerGetsTheOperators) {
  World world({.ranks = 2, .seed = 1});
  const Report report = world.run([](RankContext& ctx) {
    const ForwardCapture registers({}, {});
    Told told;
    FakeMode mode(nullptr, &told);
    const auto x = at::ones({4, 3});
    const FakeMode::Scope scope(mode);
    functional::all_reduce(x, ctx.group().get());
    EXPECT_EQ(told.names, (Names{"_c10d_functional::all_reduce", "_c10d_functional::wait_tensor"}));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

}  // namespace
}  // namespace rehearse::capture::test
