// SPDX-License-Identifier: BSD-3-Clause
// Functions that read a tensor's data and branch on it.
#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>
#include <rehearse_internal/capture/fake_errors.h>

#include "bit_equal.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

at::Tensor by_sign(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor y = (x * w).relu();
  if (y.sum().item<float>() > 10) return y * 2 + w;
  return y - x;
}

template <class Compiled, class Function>
void expect_as_eager(Compiled& compiled, Function& function, const at::Tensor& x) {
  const at::Tensor w = at::arange(4, at::kFloat).requires_grad_();
  const at::Tensor w_eager = w.detach().clone().requires_grad_();
  const at::Tensor found = compiled(x, w);
  const at::Tensor expected = function(x, w_eager);
  EXPECT_THAT(found, BitEqual(expected));
  found.sum().backward();
  expected.sum().backward();
  EXPECT_THAT(w.grad(), BitEqual(w_eager.grad()));
}

class Branches : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backend, Branches, ::testing::Values("eager", "aot_eager"));

TEST_P(Branches, EachValueHasABranchOfItsOwn) {
  auto compiled = compile(by_sign, {.backend = GetParam(), .verify = Verify::Never});
  const at::Tensor small = at::ones({4}), large = at::full({4}, 10.F);
  expect_as_eager(compiled, by_sign, small);
  EXPECT_EQ(compiled.stats().compiles, 1);
  EXPECT_EQ(compiled.stats().graphs, 2);
  expect_as_eager(compiled, by_sign, small);
  EXPECT_EQ(compiled.stats().hits, 1);
  EXPECT_EQ(compiled.stats().graphs, 2);
  expect_as_eager(compiled, by_sign, large);
  EXPECT_EQ(compiled.stats().compiles, 2);
  EXPECT_EQ(compiled.stats().graphs, 3);
  expect_as_eager(compiled, by_sign, small);
  expect_as_eager(compiled, by_sign, large);
  EXPECT_EQ(compiled.stats().hits, 3);
  EXPECT_EQ(compiled.stats().eager_calls, 0);
}

// Calls the function and the compiled function with copies of each input. Compares results, and the contents of the
// copies afterwards.
template <class Function>
CompileStats stats_of(Function function, const std::vector<at::Tensor>& inputs, CompileOptions options = {}) {
  auto compiled = compile(function, std::move(options));
  for (const at::Tensor& input : inputs) {
    const at::Tensor mine = input.clone(), theirs = input.clone();
    const at::Tensor found = compiled(mine), expected = function(theirs);
    EXPECT_THAT(found, BitEqual(expected)) << input;
    EXPECT_EQ(found.strides(), expected.strides());
    EXPECT_THAT(mine, BitEqual(theirs)) << input;
  }
  return compiled.stats();
}

std::vector<at::Tensor> full(const std::vector<float>& values, at::IntArrayRef sizes = {3}) {
  std::vector<at::Tensor> tensors;
  for (const float value : values) tensors.push_back(at::full(sizes, value));
  return tensors;
}

TEST(Reads, OfEveryKind) {
  const auto nonzero = [](const at::Tensor& x) { return (x > 1).any().is_nonzero() ? x.exp() : x * 2; };
  const auto equal = [](const at::Tensor& x) { return at::equal(x.relu(), x) ? x.exp() : x * 2; };
  const auto close = [](const at::Tensor& x) { return at::allclose(x + 1, x * 2) ? x.exp() : x - 2; };
  const auto first = [](const at::Tensor& x) { return x.select(0, 0).item<double>() > 0 ? x.exp() : x + 2; };
  EXPECT_EQ(stats_of(nonzero, full({0, 2, 0, 2, 3})).compiles, 2);
  EXPECT_EQ(stats_of(equal, full({-1, 2, -1, 2, 3})).compiles, 2);
  EXPECT_EQ(stats_of(close, full({0, 1, 1, 0})).compiles, 2);
  EXPECT_EQ(stats_of(first, full({-1, 1, -1, 1})).compiles, 2);
}

// Each iteration reads a condition, and so begins a segment. Each value of the condition has a branch of its own.
TEST(Reads, InALoop) {
  const auto halve = [](const at::Tensor& x) {
    at::Tensor y = x;
    while ((y.sum() > 1).item<bool>()) y = y / 2;
    return y + x;
  };
  const CompileStats stats = stats_of(halve, full({1, 4, 0, 1, 4, 8}), {.verify = Verify::Never});
  EXPECT_EQ(stats.compiles, 4);
  EXPECT_EQ(stats.hits, 2);
}

// A view still shares memory with its base after a read. The code changes both in place, before and after the read.
TEST_P(Branches, MemoryIsSharedAcrossARead) {
  const auto function = [](at::Tensor x) {
    x.add_(1);
    at::Tensor y = x * 2;
    at::Tensor row = y.select(0, 0);
    if (x.sum().item<float>() > 4) row.mul_(3);
    x.sub_(y.sum());
    row.add_(x.select(0, 1));
    return y * x;
  };
  const CompileStats stats = stats_of(function, full({1, 0, 1, 0, 1}, {2, 2}), {.backend = GetParam()});
  EXPECT_EQ(stats.compiles, 2);
  EXPECT_EQ(stats.eager_calls, 0);
}

TEST_P(Branches, GradientModeGoesOnBehindARead) {
  const auto function = [](const at::Tensor& x, const at::Tensor& w) {
    at::Tensor y = x * w;
    at::Tensor scale;
    {
      const at::NoGradGuard no_grad;
      scale = y.max() * w;
      if (scale.sum().item<float>() > 0) scale = scale * w + 1;
    }
    return y * scale;
  };
  auto compiled = compile(function, {.backend = GetParam()});
  for (const float value : {1.F, -1.F, 1.F, -1.F}) expect_as_eager(compiled, function, at::full({4}, value));
  EXPECT_EQ(compiled.stats().compiles, 2);
}

// A dynamic size stays a symbol on all branches.
TEST(Reads, WithSizesThatVary) {
  std::vector<at::Tensor> inputs;
  for (const std::int64_t rows : {3, 4, 5, 6}) {
    for (const float value : {-1.F, 1.F}) inputs.push_back(at::full({rows, 2}, value));
  }
  const auto function = [](const at::Tensor& x) {
    const at::Tensor y = x.cumsum(0);
    if ((y.sum() > 0).item<bool>()) return y.expand_symint({2, x.sym_size(0), 2}).sum(0);
    return y.view_symint({x.sym_size(0) * 2}) + 1;
  };
  for (const char* backend : {"eager", "aot_eager"}) {
    const CompileStats stats = stats_of(function, inputs, {.backend = backend, .dynamic = true});
    EXPECT_EQ(stats.compiles, 2) << backend;
    EXPECT_EQ(stats.hits, 6) << backend;
  }
}

// Recording the backward of index_put() fixes the number of columns, which the code after the read uses.
TEST(Reads, ASizeIsFixedByTheBackwardInFrontOfIt) {
  const at::Tensor row = at::arange(4, at::kFloat).expand({4, 4}).clone().requires_grad_();
  const auto function = [&](const at::Tensor& x, const at::Tensor& scale, const at::Tensor& rows) {
    const at::Tensor y = x.index_put({rows}, row);
    return (y.sum() > 0).item<bool>() ? y * scale.t() : y + scale;
  };
  for (const bool dynamic : {true, false}) {
    auto compiled = compile(function, {.dynamic = dynamic});
    for (const double value : {1.0, -9.0, 2.0, -9.0, 1.0}) {
      const at::Tensor x = at::full({5, 4}, value), scale = at::arange(4, at::kFloat);
      const at::Tensor rows = at::arange(12, at::kLong).view({3, 4}).fmod(5);
      EXPECT_THAT(compiled(x, scale, rows), BitEqual(function(x, scale, rows))) << value;
    }
    EXPECT_EQ(compiled.stats().eager_calls, 0);
  }
}

TEST(Reads, WithFullgraphAreErrors) {
  auto compiled = compile(by_sign, {.fullgraph = true});
  EXPECT_THROW(compiled(at::ones({4}), at::ones({4})), capture::DataDependentRead);
}

int hidden = 0;

at::Tensor reading_hidden(const at::Tensor& x) {
  const at::Tensor y = hidden == 0 ? x * 2 : x * 3;
  return (y.sum() > 6).item<bool>() ? y + 1 : y - 1;
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

// If code takes another path when it runs again from its start, the call throws, and the second run computes nothing.
TEST(Reads, CodeThatDoesNotRepeatIsAnError) {
  hidden = 0;
  auto compiled = compile(reading_hidden, {.verify = Verify::Never});
  compiled(at::ones({3}));
  hidden = 1;
  EXPECT_THAT(compiled(at::ones({3})), BitEqual(at::ones({3})));  // still the compiled result
  EXPECT_THROW(compiled(at::full({3}, 9.F)), NotRepeatable);
  const std::string told = message_of([&] { compiled(at::full({3}, 9.F)); });
  EXPECT_THAT(told, ::testing::HasSubstr("it was torch.ops.aten.mul"));
  hidden = 0;
  EXPECT_THAT(compiled(at::full({3}, 9.F)), BitEqual(reading_hidden(at::full({3}, 9.F))));
}

// By default, the first hit verifies segment by segment, and throws if the code would do something else now. With
// Always, every call gives eager mode's result.
TEST(Reads, HitsAreVerified) {
  hidden = 0;
  auto first_hit = compile(reading_hidden);
  auto always = compile(reading_hidden, {.verify = Verify::Always});
  first_hit(at::ones({3}));
  always(at::ones({3}));
  hidden = 1;
  EXPECT_THROW(first_hit(at::ones({3})), StaleCapture);
  EXPECT_THAT(always(at::ones({3})), BitEqual(reading_hidden(at::ones({3}))));
  hidden = 0;
  EXPECT_THAT(first_hit(at::ones({3})), BitEqual(reading_hidden(at::ones({3}))));
  EXPECT_THAT(always(at::ones({3})), BitEqual(reading_hidden(at::ones({3}))));
  EXPECT_EQ(always.stats().compiles, 2);
  hidden = 0;
}

// If code after a read cannot be captured, it runs in eager mode. The code before the read has taken effect once.
TEST(Reads, WhatCannotBeCapturedBehindThemRunsEagerly) {
  const auto function = [](at::Tensor x) {
    x.add_(1);
    at::Tensor y = x * 2;
    if ((x.sum() > 4).item<bool>()) y.bernoulli_(0.5, at::detail::createCPUGenerator(7));  // no graph can hold this
    return y * x;
  };
  const CompileStats stats = stats_of(function, full({3, 0, 3}));
  EXPECT_EQ(stats.eager_calls, 3);
}

// If code after a read cannot be captured, the function runs again from its start. If this second run does not reach
// the read, the call throws, and no effect happens twice.
TEST(Reads, RefusedCodeThatDoesNotReadAgainIsAnError) {
  int runs = 0;
  const auto function = [&runs](at::Tensor x) {
    x.add_(1);
    const at::Tensor y = x * 2;
    if (++runs == 1 && (y.sum() > 4).item<bool>()) static_cast<void>(y.data_ptr());
    return y;
  };
  auto compiled = compile(function, {.name = "fills_a_cache"});
  const at::Tensor x = at::ones({3});
  const std::string told = message_of([&] { compiled(x); });
  EXPECT_THAT(told, ::testing::HasSubstr(
                        "'fills_a_cache' does something that cannot be captured, after a read of data. Therefore its "
                        "code ran again from the start, but did something else than the first time"));
  EXPECT_THAT(x, BitEqual(at::full({3}, 2.F)));
  EXPECT_EQ(runs, 2);
  EXPECT_THAT(compiled(x), BitEqual(at::full({3}, 6.F)));
}

}  // namespace
}  // namespace rehearse::compiler
