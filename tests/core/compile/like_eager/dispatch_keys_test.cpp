// SPDX-License-Identifier: BSD-3-Clause
// Guards of dispatch keys hide autograd from operators: inside of the compiled function, or around its calls.
#include <functional>

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"

namespace rehearse::compiler::dispatch_keys_test {
namespace {

using rehearse::test::BitEqual;

using Function = std::function<at::Tensor(const at::Tensor& x)>;

struct Seen {
  at::Tensor result, gradient;
};

Seen call(const Function& function) {
  const at::Tensor x = at::full({3}, 0.5).requires_grad_();
  const at::Tensor y = function(x * 1);
  if (y.requires_grad()) y.sum().backward();
  return {y, x.grad()};
}

void expect_equal(const Seen& found, const Seen& expected) {
  EXPECT_THAT(found.result, BitEqual(expected.result));
  EXPECT_EQ(found.result.requires_grad(), expected.result.requires_grad());
  EXPECT_EQ(found.gradient.defined(), expected.gradient.defined());
  if (!found.gradient.defined() || !expected.gradient.defined()) return;
  EXPECT_THAT(found.gradient, BitEqual(expected.gradient));
}

TEST(DispatchKeys, GuardsInsideAreRefused) {
  const Function functions[] = {
      [](const at::Tensor& x) {
        const at::AutoDispatchBelowADInplaceOrView guard;
        return x * 2;
      },
      [](at::Tensor x) {
        {
          const at::AutoDispatchBelowAutograd guard;
          x.mul_(2);
        }
        return x.sin();
      },
      [](const at::Tensor& x) {
        const c10::impl::ExcludeDispatchKeyGuard guard(c10::autograd_dispatch_keyset);
        return at::linear(x, x);
      },
      [](const at::Tensor& x) {
        const at::Tensor y = x.detach() * 1;
        at::Tensor view;
        {
          const at::AutoDispatchBelowADInplaceOrView guard;
          view = y.view({3, 1});
        }
        y.mul_(x);
        return view * 2;
      },
  };
  for (const Function& function : functions) {
    auto compiled = compile(function);
    for (int again = 0; again < 2; ++again) expect_equal(call(compiled), call(function));
    EXPECT_THAT(compiled.explain().refusal, testing::HasSubstr("guard of dispatch keys"));
    EXPECT_THAT(compiled.explain().refusal, testing::HasSubstr("dispatch_keys_test.cpp:"));
  }
}

// The captured function may call LibTorch's own functions that hold such guards, or use guards where they change
// nothing.
TEST(DispatchKeys, WithoutEffectAreCaptured) {
  const Function functions[] = {
      [](const at::Tensor& x) { return x * torch::ones({3}) + torch::zeros_like(x) + torch::tensor({1, 2, 3}); },
      [](const at::Tensor& x) {
        at::Tensor factor;
        {
          const at::AutoDispatchBelowADInplaceOrView guard;
          factor = at::arange(3, at::kFloat) * 2;
        }
        return x * factor;
      },
  };
  for (const Function& function : functions) {
    auto compiled = compile(function, {.fullgraph = true});
    for (int again = 0; again < 2; ++again) expect_equal(call(compiled), call(function));
    EXPECT_EQ(compiled.stats().hits, 1);
  }
}

// A call whose caller holds a guard runs as it is, and no other call uses what it does.
TEST(DispatchKeys, GuardsAroundCallsRunEagerly) {
  const Function function = [](const at::Tensor& x) { return x.sin() * 2; };
  auto compiled = compile(function);
  const auto hidden = [](const Function& inner) -> Function {
    return [inner](const at::Tensor& x) {
      const at::AutoDispatchBelowADInplaceOrView guard;
      return inner(x);
    };
  };
  expect_equal(call(hidden(compiled)), call(hidden(function)));
  EXPECT_EQ(compiled.stats().eager_calls, 1);
  for (int again = 0; again < 2; ++again) expect_equal(call(compiled), call(function));
  expect_equal(call(hidden(compiled)), call(hidden(function)));
  EXPECT_EQ(compiled.stats().compiles, 1);
  EXPECT_EQ(compiled.stats().hits, 1);
  EXPECT_EQ(compiled.stats().eager_calls, 2);
}

TEST(DispatchKeys, OfInferenceModeAreNoReason) {
  auto compiled = compile([](const at::Tensor& x) { return x.sin() * 2; });
  const c10::InferenceMode inference;
  for (int again = 0; again < 2; ++again) compiled(at::ones({3}));
  EXPECT_EQ(compiled.stats().hits, 1);
  const c10::InferenceMode normal(false);
  for (int again = 0; again < 2; ++again) compiled(at::ones({3}));
  EXPECT_EQ(compiled.stats().hits, 2);
  EXPECT_EQ(compiled.stats().eager_calls, 0);
}

}  // namespace
}  // namespace rehearse::compiler::dispatch_keys_test
