// SPDX-License-Identifier: BSD-3-Clause
// tensor.data() gives a new tensor with the same memory, without a history, and with a version counter of its own.
#include <functional>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"

namespace rehearse::compiler::tensor_data_test {
namespace {

using rehearse::test::BitEqual;

using Function = std::function<at::Tensor(const at::Tensor& x)>;

// What the caller sees of the argument and the result. It also changes the result.
void expect_like_eager(const Function& function, bool requires_grad) {
  auto compiled = compile(function);
  for (int again = 0; again < 2; ++again) {
    const at::Tensor x = at::ones({2}).requires_grad_(requires_grad),
                     twin = at::ones({2}).requires_grad_(requires_grad);
    const at::Tensor found = compiled(x), expected = function(twin);
    EXPECT_THAT(found, BitEqual(expected));
    EXPECT_EQ(found.is_same(x), expected.is_same(twin));
    EXPECT_EQ(found.requires_grad(), expected.requires_grad());
    EXPECT_EQ(x.requires_grad(), twin.requires_grad());
    EXPECT_EQ(x._version(), twin._version());
    EXPECT_EQ(found._version(), expected._version());
    if (requires_grad) continue;
    found.requires_grad_();
    expected.requires_grad_();
    EXPECT_EQ(x.requires_grad(), twin.requires_grad());
  }
  EXPECT_THAT(compiled.explain().refusal, testing::HasSubstr("data()"));
  EXPECT_THAT(compiled.explain().refusal, testing::HasSubstr("tensor_data_test.cpp:"));
}

TEST(TensorData, WithoutGradRunsAsInEagerMode) {
  expect_like_eager([](const at::Tensor& x) { return x.data(); }, false);
  expect_like_eager([](const at::Tensor& x) { return x.variable_data(); }, false);
  expect_like_eager([](const at::Tensor& x) { return x.tensor_data(); }, false);
  expect_like_eager(
      [](const at::Tensor& x) {
        const at::Tensor y = x.data();
        y.add_(1);
        return y;
      },
      false);
  expect_like_eager(
      [](const at::Tensor& x) {
        const at::Tensor y = x * 2, z = y.data();
        z.requires_grad_();
        return y.requires_grad() ? y * 3 : y * 4;
      },
      false);
}

TEST(TensorData, ThatIsChangedInPlaceRunsAsInEagerMode) {
  expect_like_eager(
      [](const at::Tensor& x) {
        const at::Tensor y = x.data();
        y.add_(1);
        return y * 2;
      },
      true);
}

TEST(TensorData, WithGradIsCaptured) {
  const Function function = [](const at::Tensor& x) { return x * x.data(); };
  auto compiled = compile(function, {.fullgraph = true});
  for (int again = 0; again < 2; ++again) {
    const at::Tensor x = at::full({2}, 3.0).requires_grad_();
    compiled(x).sum().backward();
    EXPECT_THAT(x.grad(), BitEqual(at::full({2}, 3.0)));
  }
  EXPECT_EQ(compiled.stats().hits, 1);
}

}  // namespace
}  // namespace rehearse::compiler::tensor_data_test
