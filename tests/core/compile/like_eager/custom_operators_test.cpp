// SPDX-License-Identifier: BSD-3-Clause
// Operators that a program registers. compile() learns the sizes of their results only from a kernel for Meta tensors.
// It never infers these sizes from runs of the operators' kernels at other sizes.
#include <functional>
#include <optional>
#include <string>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"

namespace rehearse::compiler::custom_operators_test {
namespace {

using rehearse::test::BitEqual;
using testing::HasSubstr;

int kernel_runs = 0;

at::Tensor doubled(const at::Tensor& x) {
  ++kernel_runs;
  return x.size(0) > 5 ? at::cat({x, x}) : x.clone();
}

at::Tensor doubled_on_meta(const at::Tensor& x) {
  return x.new_empty({x.size(0) > 5 ? 2 * x.size(0) : x.size(0), x.size(1)});
}

TORCH_LIBRARY(rehearse_custom_operators_test, library) {
  library.def("without_meta(Tensor x) -> Tensor");
  library.def("with_meta(Tensor x) -> Tensor");
}

TORCH_LIBRARY_IMPL(rehearse_custom_operators_test, CPU, library) {
  library.impl("without_meta", doubled);
  library.impl("with_meta", doubled);
}

TORCH_LIBRARY_IMPL(rehearse_custom_operators_test, Meta, library) { library.impl("with_meta", doubled_on_meta); }

at::Tensor call(const char* name, const at::Tensor& x) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow((std::string("rehearse_custom_operators_test::") + name).c_str(), "")
      .typed<at::Tensor(const at::Tensor&)>()
      .call(x);
}

at::Tensor rows(std::int64_t count) { return at::arange(count * 3, at::kFloat).view({count, 3}); }

constexpr std::int64_t kRows[] = {3, 4, 6, 5, 0, 1, 9};

TEST(CustomOperators, WithoutAKernelForMeta_AreRefusedByName) {
  for (const std::optional<bool> dynamic : {std::optional<bool>(), std::optional<bool>(true)}) {
    auto compiled = compile([](const at::Tensor& x) { return call("without_meta", x) * 2; }, {.dynamic = dynamic});
    for (const std::int64_t count : kRows) {
      const int before = kernel_runs;
      EXPECT_THAT(compiled(rows(count)), BitEqual(call("without_meta", rows(count)) * 2)) << count;
      EXPECT_EQ(kernel_runs, before + 2) << count << " rows: the kernel runs on the user's numbers alone";
    }
    EXPECT_THAT(compiled.explain().refusal, HasSubstr("rehearse_custom_operators_test::without_meta"));
    EXPECT_THAT(compiled.explain().refusal, HasSubstr("Register a kernel for Meta tensors"));
  }
}

TEST(CustomOperators, WithAKernelForMeta_AreCapturedForTheSizesOfTheCall) {
  for (const std::optional<bool> dynamic : {std::optional<bool>(), std::optional<bool>(true)}) {
    auto compiled =
        compile([](const at::Tensor& x) { return call("with_meta", x) * 2; }, {.dynamic = dynamic, .fullgraph = true});
    for (const std::int64_t count : kRows) {
      EXPECT_THAT(compiled(rows(count)), BitEqual(call("with_meta", rows(count)) * 2)) << count;
    }
    EXPECT_EQ(compiled.explain().refusal, "");
  }
}

// The code of these operators must run in each call, with the gradients that eager mode gives: `composite` depends on a
// global, and of `without_derivative`, which has no kernel for autograd, eager mode differentiates the kernel's code.
double factor = 1;

at::Tensor by_factor(const at::Tensor& x) { return x * factor; }

TORCH_LIBRARY_FRAGMENT(rehearse_custom_operators_test, library) {
  library.def("composite(Tensor x) -> Tensor", by_factor);
  library.def("without_derivative(Tensor x) -> Tensor");
}

TORCH_LIBRARY_IMPL(rehearse_custom_operators_test, CompositeExplicitAutograd, library) {
  library.impl("without_derivative", by_factor);
}

at::Tensor gradient_of(const std::function<at::Tensor(const at::Tensor&)>& function) {
  const at::Tensor x = rows(2).requires_grad_();
  function(x).sum().backward();
  return x.grad();
}

TEST(CustomOperators, RunInEachCallWithTheirOwnGradients) {
  for (const char* const backend : {"eager", "aot_eager"}) {
    for (const char* const name : {"composite", "without_derivative"}) {
      const auto function = [name](const at::Tensor& x) { return call(name, x.sin()).cos(); };
      auto compiled = compile(function, {.backend = backend, .fullgraph = true});
      for (int step = 1; step < 5; ++step) {
        factor = step;
        EXPECT_THAT(compiled(rows(2)), BitEqual(function(rows(2)))) << backend << ", " << name << ", call " << step;
        const at::Tensor expected = gradient_of(function), found = gradient_of(compiled);
        ASSERT_TRUE(found.defined()) << backend << ", " << name << ", call " << step;
        EXPECT_THAT(found, BitEqual(expected)) << backend << ", " << name << ", call " << step;
      }
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler::custom_operators_test
