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

namespace rehearse::compiler::duals {
namespace {

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
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(compiled(x).equal(square(x)));
  for (int call = 0; call < 2; ++call) {
    const Level level;
    const at::Tensor found = compiled(level.dual(x)), expected = square(level.dual(x));
    EXPECT_TRUE(found.equal(expected));
    ASSERT_TRUE(level.tangent_of(found).defined());
    EXPECT_TRUE(level.tangent_of(found).equal(level.tangent_of(expected)));
  }
  EXPECT_TRUE(compiled(x).equal(square(x)));
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
  EXPECT_TRUE(level.tangent_of(anew(x)).equal(level.tangent_of(product(x))));
}

TEST(Duals, InAFunctionThatMustBeOneGraph_AreAnError) {
  auto compiled = compile([](const at::Tensor& x) { return x * x; }, {.fullgraph = true});
  const Level level;
  EXPECT_THROW(compiled(level.dual(at::ones({2}))), capture::NotCapturable);
  EXPECT_TRUE(compiled(at::ones({2})).equal(at::ones({2})));
}

}  // namespace
}  // namespace rehearse::compiler::duals
