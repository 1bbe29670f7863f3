// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse/rehearse.h>
#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/shapes/shape_env.h>
#include <rehearse_internal/shapes/sym_node.h>

// Ranks are fibers of one thread. A mode that one rank turns on must not affect the others.
namespace user {

// This code is outside of namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
__attribute__((noinline)) float read_memory(const at::Tensor& x) { return *x.data_ptr<float>() + 1; }
__attribute__((noinline)) float read_value(const at::Tensor& x) { return x.sum().item<float>() + 1; }

}  // namespace user

namespace rehearse::capture::test {
namespace {

TensorSpec matrix(c10::SymInt rows, c10::SymInt columns) {
  TensorSpec spec;
  spec.sizes = {std::move(rows), std::move(columns)};
  spec.strides = contiguous_strides(spec.sizes);
  return spec;
}

void capture_and_switch(RankContext& ctx) {
  const auto shapes = shapes::ShapeEnv::make();
  FakeMode mode(shapes);
  const at::Tensor weight = at::full({4, 4}, 1.0).requires_grad_();
  const auto version = weight._version();
  {
    const FakeMode::Scope scope(mode);
    at::Tensor x = make_fake(matrix(shapes->add_backed(2 + ctx.rank(), "x.size(0)"), 4));
    for (int i = 0; i < 4; ++i) {
      x = at::linear(x, weight).relu();
      exec::this_rank::yield();
      ASSERT_EQ(FakeMode::current(), &mode);
    }
    const at::Tensor gradient = torch::autograd::grad({x.sum()}, {weight})[0];
    exec::this_rank::yield();
    EXPECT_TRUE(is_fake(gradient));
    EXPECT_EQ(gradient.sizes(), at::IntArrayRef({4, 4}));
    EXPECT_EQ(shapes::text_of(x.sym_size(0)), "s0");
  }
  EXPECT_EQ(weight._version(), version);
  EXPECT_FALSE(weight.grad().defined());
  EXPECT_TRUE(shapes->guards().empty());
  EXPECT_EQ(mode.inference_counts().sampled, 0U);
}

TEST(FakeModeOnFibers, SixtyFourRanksThatSwitchInside_StayIndependent) { check({.ranks = 64}, capture_and_switch); }

TEST(FakeModeOnFibers, OtherRanks_ComputeMeanwhile) {
  check({.ranks = 4}, [](RankContext& ctx) {
    FakeMode mode(nullptr);
    std::optional<FakeMode::Scope> scope;
    if (ctx.rank() % 2 == 0) scope.emplace(mode);
    exec::this_rank::yield();
    const at::Tensor x = at::full({2}, 3.0);
    exec::this_rank::yield();
    EXPECT_EQ(is_fake(x + 1), ctx.rank() % 2 == 0);
    if (ctx.rank() % 2 == 1) {
      EXPECT_EQ((x + 1).sum().item<double>(), 8.0);
    }
  });
}

TEST(FakeModeOnFibers, ErrorsNameTheUsersLine) {
  check({.ranks = 1}, [](RankContext&) {
    FakeMode mode(nullptr);
    const FakeMode::Scope scope(mode);
    const at::Tensor x = at::ones({2});
    try {
      with_typed_errors([&] { user::read_memory(x); });
      ADD_FAILURE() << "data_ptr() did not throw";
    } catch (const DataAccess& error) {
      EXPECT_NE(std::string(error.what()).find("fibers_test.cpp:"), std::string::npos) << error.what();
    }
    try {
      user::read_value(x);
      ADD_FAILURE() << "item() did not throw";
    } catch (const DataDependentRead& error) {
      EXPECT_EQ(error.operator_name(), "aten::_local_scalar_dense");
      EXPECT_NE(std::string(error.what()).find("fibers_test.cpp:"), std::string::npos) << error.what();
    }
  });
}

}  // namespace
}  // namespace rehearse::capture::test
