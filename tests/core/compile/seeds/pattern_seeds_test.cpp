// SPDX-License-Identifier: BSD-3-Clause
// Seeds of DistributedPatternTests: leaves that a captured function makes, in place of nn.Parameter.
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>

#include "core/compile/seeds/seed_test.h"

namespace rehearse::compiler {
namespace {

using Two = std::vector<at::Tensor>;
using MakesLeaf = Two (*)(const at::Tensor& x);

// Goes backward from both outputs, if they require grad, and compares them: type, value, gradient, whether they require
// grad and are leaves.
void expect_like(const Two& found, const Two& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(found[i].scalar_type(), expected[i].scalar_type());
    EXPECT_TRUE(found[i].equal(expected[i]));
    EXPECT_EQ(found[i].requires_grad(), expected[i].requires_grad());
    EXPECT_EQ(found[i].is_leaf(), expected[i].is_leaf());
    for (const at::Tensor& each : {found[i], expected[i]}) {
      if (each.requires_grad()) each.sum().backward();
    }
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(i);
    if (!expected[i].is_leaf()) continue;
    const at::Tensor gradient = found[i].grad(), wanted = expected[i].grad();
    EXPECT_EQ(gradient.defined(), wanted.defined());
    EXPECT_TRUE(!wanted.defined() || gradient.equal(wanted));
  }
}

// Through each back end; gives what it has compiled in two calls.
std::vector<std::pair<CompileStats, Counts>> expect_leaf_like_eager(MakesLeaf function) {
  std::vector<std::pair<CompileStats, Counts>> of_backends;
  for (const char* backend : {"eager", "aot_eager"}) {
    SCOPED_TRACE(backend);
    auto compiled = compile(function, {.backend = backend, .fullgraph = true});
    Counts counts;
    for (int call = 0; call < 2; ++call) {
      const at::Tensor x = at::randn({16});
      const Two found = compiled(x);
      counts.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
      expect_like(found, function(x.clone()));
    }
    of_backends.emplace_back(compiled.stats(), counts);
  }
  return of_backends;
}

TEST_F(DistributedPatternTests, test_nn_param_return1) {
  on_ranks([this](RankContext&) {
    for (const auto& [stats, counts] : expect_leaf_like_eager([](const at::Tensor& x) {
           const at::Tensor p = x.detach().requires_grad_();
           return Two{p, p.sin()};
         })) {
      expect_listed(stats, counts);
    }
  });
}
TEST_F(DistributedPatternTests, test_nn_param_return2) {
  on_ranks([this](RankContext&) {
    for (const auto& [stats, counts] :
         expect_leaf_like_eager([](const at::Tensor& x) { return Two{x.detach().requires_grad_(false), x + 1}; })) {
      expect_listed(stats, counts);
    }
  });
}
TEST_F(DistributedPatternTests, test_nn_param_return3) {
  on_ranks([this](RankContext&) {
    for (const auto& [stats, counts] : expect_leaf_like_eager([](const at::Tensor& x) {
           const at::Tensor p = (x + 123).detach().requires_grad_();
           return Two{p, p.sin()};
         })) {
      expect_listed(stats, counts);
    }
  });
}
TEST_F(DistributedPatternTests, test_nn_param_return4) {
  on_ranks([this](RankContext&) {
    for (const auto& [stats, counts] : expect_leaf_like_eager(
             [](const at::Tensor& x) { return Two{(x + 123).detach().requires_grad_(false), x + 1}; })) {
      expect_listed(stats, counts);
    }
  });
}

}  // namespace
}  // namespace rehearse::compiler
