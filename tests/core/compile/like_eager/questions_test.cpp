// SPDX-License-Identifier: BSD-3-Clause
// Operators that return no tensor: questions about tensors, which the capture answers.
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

}  // namespace
}  // namespace rehearse::compiler::questions_test
