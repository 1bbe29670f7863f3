// SPDX-License-Identifier: BSD-3-Clause
// Contract: a call may pass what converts to the function's parameter: std::nullopt for a std::optional, and every kind
// of text for a std::string or a std::string_view.
#include <optional>
#include <string>
#include <string_view>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"

// These tests have a namespace of their own, because a unity build compiles several sources of this program as one.
namespace rehearse::compiler::converted_arguments {
namespace {

using rehearse::test::BitEqual;

TEST(ConvertedArguments, Nullopt_IsAnEmptyOptional) {
  auto masked = compile([](const at::Tensor& x, const std::optional<at::Tensor>& mask, std::optional<double> scale) {
    return (mask ? x * *mask : x + 1) * scale.value_or(3);
  });
  const at::Tensor x = at::ones({2}), mask = at::zeros({2});
  for (int call = 0; call < 3; ++call) {
    EXPECT_THAT(masked(x, std::nullopt, std::nullopt), BitEqual(x * 6));
    EXPECT_THAT(masked(x, mask, std::nullopt), BitEqual(mask));
    EXPECT_THAT(masked(x, std::nullopt, 2.0), BitEqual(x * 4));
    EXPECT_THAT(masked(x, std::optional<at::Tensor>(), 2.0), BitEqual(x * 4));
  }
  const auto& none = std::nullopt;
  EXPECT_THAT(masked(x, none, none), BitEqual(x * 6));
  EXPECT_EQ(masked.stats().eager_calls, 0);
}

TEST(ConvertedArguments, TextOfAnyKind_IsGuardedByItsContents) {
  const auto by_length = [](const at::Tensor& x, std::string_view text) {
    return x * static_cast<double>(text.size());
  };
  auto compiled = compile(by_length);
  const at::Tensor x = at::ones({2});
  const std::string_view view("hey");
  std::string text("hey");
  for (int call = 0; call < 2; ++call) {
    EXPECT_THAT(compiled(x, view), BitEqual(x * 3));
    EXPECT_THAT(compiled(x, std::string_view("hello")), BitEqual(x * 5));
    EXPECT_THAT(compiled(x, "hey"), BitEqual(x * 3));
    EXPECT_THAT(compiled(x, text), BitEqual(x * 3));
  }
  EXPECT_EQ(compiled.stats().compiles, 2);
}

}  // namespace
}  // namespace rehearse::compiler::converted_arguments
