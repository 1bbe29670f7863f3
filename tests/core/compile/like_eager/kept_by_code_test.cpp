// SPDX-License-Identifier: BSD-3-Clause
// Tensors that code keeps. The tests have four cases: the code throws, the code must be one graph (fullgraph), the kept
// tensor is a leaf, and the code runs for verification.
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"
#include "kept_state.h"

namespace rehearse::compiler::kept_tensors {
namespace {

using rehearse::test::BitEqual;
using testing::HasSubstr;

std::string outcome_of(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(KeptTensorsOfCode, ThatThrows_AreThoseOfEagerMode) {
  const auto fill = [](State& state, const at::Tensor& x) {
    const bool is_new = !state.cache.defined();
    if (is_new) state.cache = at::ones({4, 4}).tril() * x.detach().sum();
    if (is_new) throw std::runtime_error("not yet");
    return x.matmul(state.cache);
  };
  for (const bool fullgraph : {false, true}) {
    State eager, state;
    auto compiled = compile([&](const at::Tensor& x) { return fill(state, x); }, {.fullgraph = fullgraph});
    const at::Tensor x = at::ones({3, 4});
    EXPECT_EQ(outcome_of([&] { compiled(x); }), "not yet");
    EXPECT_EQ(outcome_of([&] { fill(eager, x); }), "not yet");
    EXPECT_THAT(compiled(x), BitEqual(fill(eager, x)));
    EXPECT_THAT(state.cache, BitEqual(eager.cache));
    EXPECT_EQ(compiled.stats().compiles, 1);
  }
}

TEST(KeptTensorsOfCode, ThatMustBeOneGraph_MayBeFilledOnce) {
  State state;
  auto masked = compile(
      [&](const at::Tensor& x) {
        if (!state.cache.defined()) state.cache = at::ones({4, 4}).tril();
        return x.matmul(state.cache);
      },
      {.fullgraph = true});
  const at::Tensor x = at::rand({3, 4});
  const at::Tensor expected = x.matmul(at::ones({4, 4}).tril());
  for (int call = 0; call < 3; ++call) EXPECT_THAT(masked(x), BitEqual(expected));
  EXPECT_EQ(masked.stats().compiles, 1);
  EXPECT_EQ(masked.stats().hits, 1);

  auto averaged = compile([&](const at::Tensor& x) { return state.other = x * 2; }, {.fullgraph = true});
  EXPECT_THAT(averaged(x), BitEqual(x * 2));
  EXPECT_THAT(outcome_of([&] { averaged(x); }), HasSubstr("outlives the call"));
  EXPECT_THAT(state.other, BitEqual(x * 2));
}

// If the code keeps an argument that is a leaf, the kept tensor is a second object for the same leaf, whether or not
// the code reads data afterwards.
TEST(KeptTensorsOfCode, OfALeaf_HasItsGradients) {
  for (const bool reads : {false, true}) {
    std::vector<at::Tensor> kept;
    auto compiled = compile([&](const at::Tensor& x) {
      if (kept.empty()) kept.push_back(x);
      const at::Tensor y = x * 2;
      return reads && y.sum().item<double>() < 0 ? y : y + 1;
    });
    const at::Tensor x = at::ones({2}, at::kDouble).requires_grad_();
    compiled(x).sum().backward();
    const at::Tensor leaf = kept.at(0);
    EXPECT_TRUE(leaf.is_leaf() && leaf.requires_grad());
    EXPECT_TRUE(leaf.grad().is_same(x.grad()));
    leaf.pow(2).sum().backward();
    EXPECT_THAT(x.grad(), BitEqual(at::full({2}, 4.0, at::kDouble)));
    EXPECT_TRUE(leaf.grad().is_same(x.grad()));
    leaf.mutable_grad().reset();
    EXPECT_FALSE(x.grad().defined());
    const at::NoGradGuard no_grad;
    const auto version = x._version();
    leaf.add_(1);
    EXPECT_THAT(x, BitEqual(at::full({2}, 2.0, at::kDouble)));
    EXPECT_EQ(x._version(), version + 1);
    x.requires_grad_(false);
    EXPECT_FALSE(leaf.requires_grad());
  }
}

TEST(KeptTensorsOfCode, ThatIsVerified_AreReal) {
  State state;
  auto compiled = compile([&](const at::Tensor& x) {
    if (++state.calls == 2) state.cache = at::ones({4, 4}).tril();
    return x * 2;
  });
  const at::Tensor x = at::rand({3, 4});
  compiled(x);
  EXPECT_THAT(outcome_of([&] { compiled(x); }), HasSubstr("outlives the call"));
  EXPECT_THAT(state.cache, BitEqual(at::ones({4, 4}).tril()));
}

}  // namespace
}  // namespace rehearse::compiler::kept_tensors
