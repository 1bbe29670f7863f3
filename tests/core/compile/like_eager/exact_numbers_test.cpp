// SPDX-License-Identifier: BSD-3-Clause
// Contract: numbers that == does not tell apart, but that give other results, compile anew: 0.0 and -0.0, and long
// doubles that are equal as doubles. NaN is equal to itself.
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/watch.h>

#include "bit_equal.h"

namespace rehearse::compiler::exact_numbers {
namespace {

using rehearse::test::BitEqual;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor ones() { return at::ones({2}, at::kDouble); }

// Calls `compiled` and `function` with each number. NaN equals NaN.
template <class Compiled, class Function, class Number>
void expect_equal(Compiled& compiled, const Function& function, const std::vector<Number>& numbers) {
  for (const Number number : numbers) {
    const at::Tensor found = compiled(ones(), number), expected = function(ones(), number);
    EXPECT_TRUE(at::allclose(found, expected, 0, 0, /*equal_nan=*/true)) << found << expected;
    EXPECT_EQ(std::signbit(found[0].item<double>()), std::signbit(expected[0].item<double>()));
  }
}

TEST(ExactNumbers, WatchedZeros) {
  double watched = 0;
  const auto function = [&](const at::Tensor& x) { return x / rehearse::watch(watched); };
  auto compiled = compile(function);
  for (const double number : {0.0, 0.0, -0.0, 0.0, -0.0, kNan, kNan, -kNan, 1.0}) {
    watched = number;
    EXPECT_TRUE(at::allclose(compiled(ones()), function(ones()), 0, 0, /*equal_nan=*/true)) << number;
  }
  EXPECT_EQ(compiled.stats().compiles, 4);
}

TEST(ExactNumbers, WatchedListsOfZeros) {
  std::vector<double> watched{0, kNan};
  const auto function = [&](const at::Tensor& x) { return x / rehearse::watch(watched)[0]; };
  auto compiled = compile(function);
  for (const double number : {0.0, 0.0, -0.0, 0.0}) {
    watched[0] = number;
    EXPECT_THAT(compiled(ones()), BitEqual(function(ones()))) << number;
  }
  EXPECT_EQ(compiled.stats().compiles, 2);
}

// docs/COMPILE.md lists this among the exceptions: == takes the zeros for equal, so the graph of the first one serves.
TEST(ExactNumbers, ZerosInAWatchedOptional_AreComparedByItsOwnOperator) {
  std::optional<double> watched = 0;
  auto compiled =
      compile([&](const at::Tensor& x) { return x / rehearse::watch(watched).value(); }, {.verify = Verify::Never});
  const at::Tensor first = compiled(ones());
  watched = -0.0;
  EXPECT_THAT(compiled(ones()), BitEqual(first));
  EXPECT_EQ(compiled.stats().compiles, 1);
}

TEST(ExactNumbers, Arguments) {
  const auto divided = [](const at::Tensor& x, double by) { return x / by; };
  auto compiled = compile(divided);
  expect_equal(compiled, divided, std::vector<double>{0.0, 0.0, -0.0, kNan, kNan, 0.0});
  EXPECT_EQ(compiled.stats().compiles, 3);
}

TEST(ExactNumbers, LongDoubles) {
  const auto scaled = [](const at::Tensor& x, long double by) { return x * static_cast<double>((by - 1) * 1e18L); };
  auto compiled = compile(scaled);
  expect_equal(compiled, scaled, std::vector<long double>{1.0L, 1.0L, 1.0L + 2e-18L, 1.0L, 1.0L + 4e-18L});
}

}  // namespace
}  // namespace rehearse::compiler::exact_numbers
