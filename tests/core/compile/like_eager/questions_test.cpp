// SPDX-License-Identifier: BSD-3-Clause
// LibTorch's functions that answer a question about tensors and return no tensor. During a capture, the capture gives
// the answer.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>

namespace rehearse::compiler::questions_test {
namespace {

using Question = bool (*)(const at::Tensor& x, const at::Tensor& y);

const Question kQuestions[] = {
    [](const at::Tensor& x, const at::Tensor& y) { return at::is_same_size(x, y); },
    [](const at::Tensor& x, const at::Tensor& y) { return x.is_same_size(y.t()); },
    [](const at::Tensor& x, const at::Tensor& y) { return x.is_set_to(y); },
    [](const at::Tensor& x, const at::Tensor&) { return x.is_set_to(x); },
    [](const at::Tensor& x, const at::Tensor&) { return x.is_pinned(); },
    [](const at::Tensor& x, const at::Tensor& y) { return at::_has_same_storage_numel(x, y); },
    [](const at::Tensor& x, const at::Tensor&) { return x.is_floating_point() && !x.is_complex(); },
    [](const at::Tensor& x, const at::Tensor&) { return x.is_contiguous() && x.is_nonzero(); },
};

TEST(Questions, AreAnsweredAsInEagerMode) {
  int number = 0;
  for (const Question question : kQuestions) {
    SCOPED_TRACE(number++);
    const auto function = [question](const at::Tensor& x, const at::Tensor& y) {
      return question(x, y) ? x * 2 : y * 3;
    };
    auto compiled = compile(function);
    for (const std::int64_t rows : {1, 1, 2, 3}) {
      const at::Tensor x = number == 8 ? at::ones({1, 1}) : at::randn({rows, 2}), y = at::randn({2, rows}).t();
      EXPECT_TRUE(compiled(x, y).equal(function(x, y)));
      EXPECT_TRUE(compiled(x, x).equal(function(x, x)));
    }
  }
}

// nonzero() returns a column-major tensor, and tensors computed from it have such a layout, too. If there is at most
// one row, this layout is also contiguous. So data decides whether the tensor is contiguous, and code that asks must
// take the branch of eager mode.
TEST(Questions, AboutALayoutThatDependsOnData_AreAnsweredAsInEagerMode) {
  using Function = at::Tensor (*)(const at::Tensor& x);
  const Function functions[] = {
      [](const at::Tensor& x) { return x.nonzero(); },
      [](const at::Tensor& x) { return x.nonzero() + at::zeros({1, 2}, at::kLong); },
      [](const at::Tensor& x) { return x.index({x.nonzero()}); },
      [](const at::Tensor& x) { return x.index({x.nonzero()}).permute({2, 0, 1}) + 1; },
      [](const at::Tensor& x) { return at::ones_like(x.nonzero().t()); },
  };
  at::Tensor one_row = at::zeros({4, 4});
  one_row[1][2] = 1;
  for (const Function function : functions) {
    const auto branch = [function](const at::Tensor& x) {
      const at::Tensor y = function(x);
      return y.is_contiguous() ? y * 2 : y * 3;
    };
    for (const bool contiguous_first : {false, true}) {
      auto compiled = compile(branch);
      for (const bool contiguous : {contiguous_first, !contiguous_first}) {
        const at::Tensor x = contiguous ? one_row : at::eye(4);
        EXPECT_TRUE(compiled(x).equal(branch(x)));
      }
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler::questions_test
