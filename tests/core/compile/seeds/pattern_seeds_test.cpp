// SPDX-License-Identifier: BSD-3-Clause
// Seed tests of DistributedPatternTests: a captured function changes storages and versions, and makes leaves. PyTorch's
// tests make an nn.Parameter instead of a leaf.
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/capture/storage.h>
#include <rehearse/capture/versions.h>
#include <rehearse/compile/compile.h>

#include "bit_equal.h"
#include "core/compile/seeds/seed_test.h"
#include "core/compile/seeds/storage_seeds.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

using Two = std::vector<at::Tensor>;
using MakesLeaf = Two (*)(const at::Tensor& x);

// Compares the outputs of a call with those of eager mode: dtype, values, gradient, requires_grad and is_leaf. Runs the
// backward from each output that requires a gradient.
void expect_like(const Two& found, const Two& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_THAT(found[i], BitEqual(expected[i]));
    EXPECT_EQ(found[i].requires_grad(), expected[i].requires_grad());
    EXPECT_EQ(found[i].is_leaf(), expected[i].is_leaf());
    for (const at::Tensor& each : {found[i], expected[i]}) {
      if (each.requires_grad()) each.sum().backward();
    }
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(i);
    if (!expected[i].is_leaf()) continue;
    EXPECT_THAT(found[i].grad(), BitEqual(expected[i].grad()));
  }
}

// Calls the function twice with each of two back ends, and compares with eager mode. Returns for each back end the
// statistics, and the number of compilations in each call.
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

TEST_F(DistributedPatternTests, test_storage_resize_zero_cpu) {
  on_ranks([this](RankContext&) {
    const Compiled compiled = resize_argument_to_zero(at::kCPU);
    expect_listed(compiled.stats, compiled.counts);
  });
}
TEST_F(DistributedPatternTests, test_storage_resize_nonzero_cpu) {
  on_ranks([this](RankContext&) {
    const Compiled compiled = resize_result_to_argument(at::kCPU);
    expect_listed(compiled.stats, compiled.counts);
  });
}

TEST_F(DistributedPatternTests, test_unsafe_set_version_counter1) {
  on_ranks([this](RankContext&) {
    const at::NoGradGuard no_grad;
    auto compiled = compile(
        [](const at::Tensor& w, const at::Tensor& x) {
          const c10::SymInt before = version(w);
          w.copy_(x.sin() + 1);
          set_version(w, before);
          return std::tuple(w, before);
        },
        {.fullgraph = true});
    const int starts[] = {3, 0, 1};
    const Counts counts = counts_of(compiled, 3, [&](int call) {
      const at::Tensor w = at::randn({16}), x = at::randn({16});
      set_version(w, starts[call]);
      const auto [result, before] = compiled(w, x);
      EXPECT_TRUE(result.is_same(w));
      EXPECT_THAT(w, BitEqual(x.sin() + 1));
      EXPECT_EQ(before, starts[call]);
      EXPECT_EQ(w._version(), starts[call]);
    });
    expect_listed(compiled.stats(), counts);
  });
}
TEST_F(DistributedPatternTests, test_unsafe_preserve_version_counter1) {
  on_ranks([this](RankContext&) {
    const at::NoGradGuard no_grad;
    auto compiled = compile(
        [](const at::Tensor& w, const at::Tensor& x) {
          const PreserveVersion keep(w);
          w.copy_(x.sin() + 1);
          return w;
        },
        {.backend = "eager", .fullgraph = true});
    const Counts counts = counts_of(compiled, 2, [&](int call) {
      const at::Tensor w = at::randn({16}), x = at::randn({16});
      set_version(w, call + 1);
      EXPECT_TRUE(compiled(w, x).is_same(w));
      EXPECT_THAT(w, BitEqual(x.sin() + 1));
      EXPECT_EQ(w._version(), call + 1);
    });
    expect_listed(compiled.stats(), counts);
  });
}

// Autograd saves w for r = sin(w). When the backward runs, w has x's values.
template <class Compiled>
void expect_overwritten_value(Compiled& compiled) {
  const at::Tensor w = at::randn({16}).requires_grad_(), x = at::randn({16}), before = w.detach().clone();
  const at::Tensor r = compiled(w, x);
  EXPECT_THAT(r, BitEqual(before.sin()));
  r.sum().backward();
  EXPECT_THAT(w, BitEqual(x));
  EXPECT_THAT(w.grad(), BitEqual(x.cos()));
}

TEST_F(DistributedPatternTests, test_unsafe_set_version_counter2) {
  on_ranks([this](RankContext&) {
    auto compiled = compile(
        [](const at::Tensor& w, const at::Tensor& x) {
          const at::Tensor r = w.sin();
          const at::NoGradGuard no_grad;
          const c10::SymInt before = version(w);
          w.copy_(x);
          set_version(w, before);
          return r;
        },
        {.fullgraph = true});
    const Counts counts = counts_of(compiled, 2, [&](int) { expect_overwritten_value(compiled); });
    expect_listed(compiled.stats(), counts);
  });
}
TEST_F(DistributedPatternTests, test_unsafe_preserve_version_counter2) {
  on_ranks([this](RankContext&) {
    auto compiled = compile(
        [](const at::Tensor& w, const at::Tensor& x) {
          const at::Tensor r = w.sin();
          const at::NoGradGuard no_grad;
          const PreserveVersion keep(w);
          w.copy_(x);
          return r;
        },
        {.fullgraph = true});
    const Counts counts = counts_of(compiled, 2, [&](int) { expect_overwritten_value(compiled); });
    expect_listed(compiled.stats(), counts);
  });
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
