// SPDX-License-Identifier: BSD-3-Clause
// Forward-mode differentiation: a graph has no tangents, so a call with dual tensors runs in eager mode, or is an error
// with fullgraph.
#include <cstdint>
#include <tuple>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <rehearse/compile/compile.h>
#include <rehearse_internal/capture/errors.h>

#include "bit_equal.h"

namespace rehearse::compiler::duals {
namespace {

using rehearse::test::BitEqual;

class Level {
 public:
  Level() : number_(torch::autograd::ForwardADLevel::get_next_idx()) {}
  ~Level() { torch::autograd::ForwardADLevel::release_idx(number_); }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  at::Tensor dual(const at::Tensor& value) const {
    return at::_make_dual(value, at::full_like(value, 0.5), static_cast<std::int64_t>(number_));
  }
  at::Tensor tangent_of(const at::Tensor& dual) const {
    return std::get<1>(at::_unpack_dual(dual, static_cast<std::int64_t>(number_)));
  }

 private:
  const std::uint64_t number_;
};

TEST(Duals, OfArguments_HaveTheirTangents) {
  const auto square = [](const at::Tensor& x) { return x * x; };
  auto compiled = compile(square);
  const at::Tensor x = at::arange(3, at::kFloat);
  for (int call = 0; call < 2; ++call) EXPECT_THAT(compiled(x), BitEqual(square(x)));
  for (int call = 0; call < 2; ++call) {
    const Level level;
    const at::Tensor found = compiled(level.dual(x)), expected = square(level.dual(x));
    EXPECT_THAT(found, BitEqual(expected));
    ASSERT_TRUE(level.tangent_of(found).defined());
    EXPECT_THAT(level.tangent_of(found), BitEqual(level.tangent_of(expected)));
  }
  EXPECT_THAT(compiled(x), BitEqual(square(x)));
  EXPECT_EQ(compiled.stats().compiles, 1);
  EXPECT_THAT(compiled.explain().refusal, testing::HasSubstr("is dual"));
}

TEST(Duals, ThatAFunctionFinds_HaveTheirTangents) {
  at::Tensor weight = at::arange(1, 4, at::kFloat);
  const auto product = [&](const at::Tensor& x) { return x * weight; };
  auto compiled = compile(product);
  const at::Tensor x = at::arange(3, at::kFloat), plain = weight;
  for (int call = 0; call < 2; ++call) compiled(x);
  const Level level;
  weight = level.dual(plain);
  EXPECT_TRUE(level.tangent_of(product(x)).defined());
  auto anew = compile(product);
  EXPECT_THAT(level.tangent_of(anew(x)), BitEqual(level.tangent_of(product(x))));
}

TEST(Duals, InAFunctionThatMustBeOneGraph_AreAnError) {
  auto compiled = compile([](const at::Tensor& x) { return x * x; }, {.fullgraph = true});
  const Level level;
  EXPECT_THROW(compiled(level.dual(at::ones({2}))), capture::NotCapturable);
  EXPECT_THAT(compiled(at::ones({2})), BitEqual(at::ones({2})));
}

}  // namespace
}  // namespace rehearse::compiler::duals
