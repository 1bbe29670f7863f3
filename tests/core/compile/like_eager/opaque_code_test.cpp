// SPDX-License-Identifier: BSD-3-Clause
// Contract: each call of a graph runs the function of opaque() itself, forward and backward, as eager mode does. So the
// function and its gradients may depend on state that changes between calls.
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <rehearse/capture/opaque.h>
#include <rehearse/compile/compile.h>
#include <rehearse/parallel/checkpoint.h>

#include "bit_equal.h"

namespace rehearse::compiler::opaque_code {
namespace {

using rehearse::test::BitEqual;

double g_factor = 1;
double g_slope = 1;
int g_backwards = 0;

class Scaled : public torch::autograd::Function<Scaled> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x * g_factor; }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*,
                                               const torch::autograd::tensor_list& gradients) {
    ++g_backwards;
    return {gradients[0] * g_slope};
  }
};

at::Tensor scaled(const at::Tensor& x) {
  return opaque([](const at::Tensor& in) { return Scaled::apply(in); }, x.sin()).cos();
}

at::Tensor in_a_checkpoint(const at::Tensor& x) {
  return checkpoint([](const at::Tensor& in) { return scaled(in) * in; }, x).exp();
}

// Both results, and how often the code of the backward ran.
struct Step {
  at::Tensor result, gradient;
  int backwards = 0;
};

template <class Function>
Step step(Function&& function, std::int64_t size) {
  const at::Tensor x = (at::arange(size, at::kDouble) / 7).requires_grad_();
  Step step;
  g_backwards = 0;
  step.result = function(x);
  step.result.sum().backward();
  step.gradient = x.grad();
  step.backwards = g_backwards;
  return step;
}

TEST(OpaqueCode, RunsInEachCall) {
  for (const char* const backend : {"eager", "aot_eager"}) {
    for (const auto function : {&scaled, &in_a_checkpoint}) {
      for (const auto verify : {Verify::Never, Verify::FirstHit, Verify::Always}) {
        auto compiled = compile(function, {.backend = backend, .verify = verify});
        for (int call = 0; call < 5; ++call) {
          g_factor = 1 + call;
          g_slope = 3 - call;
          const std::int64_t size = call < 3 ? 4 : 6;
          const Step expected = step(function, size), found = step(compiled, size);
          EXPECT_THAT(found.result, BitEqual(expected.result)) << backend << ", call " << call;
          EXPECT_THAT(found.gradient, BitEqual(expected.gradient)) << backend << ", call " << call;
          EXPECT_EQ(found.backwards, expected.backwards) << backend << ", call " << call;
        }
      }
    }
  }
}

// A graph could not know about the change, so the call runs as it is.
TEST(OpaqueCode, ThatChangesATensorInPlace_IsRefused) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor y = x * 2;
    const at::Tensor z = opaque([](const at::Tensor& in) { return in.mul_(3).sin(); }, y);
    return y + z;
  };
  for (const char* const backend : {"eager", "aot_eager"}) {
    for (const bool with_gradient : {false, true}) {
      auto compiled = compile(function, {.backend = backend});
      for (int call = 0; call < 3; ++call) {
        const at::Tensor x = at::arange(4, at::kDouble).requires_grad_(with_gradient);
        EXPECT_THAT(compiled(x), BitEqual(function(x))) << backend << ", call " << call;
      }
      EXPECT_THAT(compiled.explain().refusal, testing::HasSubstr("opaque() changes one of its tensors in place"));
      EXPECT_THAT(compiled.explain().refusal, testing::HasSubstr("opaque_code_test.cpp"));
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler::opaque_code
