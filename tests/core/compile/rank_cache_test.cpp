// SPDX-License-Identifier: BSD-3-Clause
// Each rank has a cache of its own for each function.
#include <memory>
#include <thread>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/counting_backend.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/exec/this_rank.h>

#include "bit_equal.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

void run_world(int ranks, const World::Body& body) {
  World world({.ranks = ranks});
  const Report report = world.run(body);
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

// A back end that lets other fibers run while it compiles.
class SlowBackend final : public Backend {
 public:
  std::string name() const override { return "slow"; }
  CompiledGraph compile(const BackendInput& input) override {
    ++compiling_;
    most_ = std::max(most_, compiling_);
    for (int i = 0; i < 5; ++i) exec::this_rank::yield();
    --compiling_;
    return counting_.compile(input);
  }
  int most_at_once() const noexcept { return most_; }
  std::size_t graphs() const noexcept { return counting_.graphs(); }

 private:
  CountingBackend counting_;
  int compiling_ = 0;
  int most_ = 0;
};

TEST(RankCache, ASecondFiberWaitsForTheCompilation) {
  run_world(2, [](RankContext&) {
    const auto slow = std::make_shared<SlowBackend>();
    auto compiled = compile([](const at::Tensor& x) { return x * 2; }, {.backend = slow, .verify = Verify::Never});
    const auto call = [&] { EXPECT_THAT(compiled(at::ones({3})), BitEqual(at::full({3}, 2.0))); };
    std::thread first(call), second(call);
    call();
    first.join();
    second.join();
    EXPECT_EQ(slow->graphs(), 1U);
    EXPECT_EQ(slow->most_at_once(), 1);
    EXPECT_EQ(compiled.stats().calls, 3);
    EXPECT_EQ(compiled.stats().hits, 2);
  });
}

TEST(RankCache, EachRankOfEachWorldHasItsOwn) {
  auto compiled = compile([](const at::Tensor& x) { return x * 2; }, {.backend = "eager"});
  for (int world = 0; world < 2; ++world) {
    run_world(3, [&](RankContext& ctx) {
      for (int call = 0; call <= ctx.rank(); ++call) {
        EXPECT_THAT(compiled(at::ones({3})), BitEqual(at::full({3}, 2.0)));
        exec::this_rank::yield();
      }
      EXPECT_EQ(compiled.stats().compiles, 1);
      EXPECT_EQ(compiled.stats().hits, ctx.rank());
    });
  }
  EXPECT_EQ(compiled.stats().calls, 0);
}

TEST(RankCache, AFailedCompilationLeavesNothing) {
  class Failing final : public Backend {
   public:
    std::string name() const override { return "failing"; }
    CompiledGraph compile(const BackendInput& input) override {
      if (++calls_ == 1) throw std::domain_error("not today");
      return make_backend("eager")->compile(input);
    }

   private:
    int calls_ = 0;
  };
  run_world(1, [](RankContext&) {
    auto compiled = compile([](const at::Tensor& x) { return x * 2; }, {.backend = std::make_shared<Failing>()});
    EXPECT_THROW(compiled(at::ones({3})), std::domain_error);
    EXPECT_EQ(compiled.stats().compiles, 0);
    EXPECT_THAT(compiled(at::ones({3})), BitEqual(at::full({3}, 2.0)));
    EXPECT_EQ(compiled.stats().compiles, 1);
  });
}

}  // namespace
}  // namespace rehearse::compiler
