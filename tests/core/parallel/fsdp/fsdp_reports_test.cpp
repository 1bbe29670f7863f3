// SPDX-License-Identifier: BSD-3-Clause
// Reports about sharded models name the unit and the rank.
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "core/parallel/fsdp/fsdp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::FullyShardedDataParallel;
using rehearse::RankContext;
using rehearse::UnitPolicy;
using ::testing::HasSubstr;

rehearse::Report report_of(const rehearse::WorldOptions& options, const rehearse::World::Body& body) {
  rehearse::World world(options);
  return world.run(body);
}

TEST(FsdpReports, RankThatSkipsAUnit_IsNamedWithTheUnit) {
  const auto report = report_of({.ranks = 3}, [](RankContext& ctx) {
    Mlp net;
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear, .init_sync = false});
    fsdp.forward_with(
        [&](const at::Tensor& x) {
          auto y = net->first(x);
          if (ctx.rank() != 1) y = net->second(y);
          return net->third(y);
        },
        batch_of(ctx.rank(), 0));
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::mismatch);
  EXPECT_THAT(report.headline, HasSubstr("rank 1 called"));
  EXPECT_THAT(report.headline, HasSubstr("FSDP unit \"third\": parameters"));
  EXPECT_THAT(report.headline, HasSubstr("FSDP unit \"second\": parameters"));
}

TEST(FsdpReports, ExceptionInForward_IsTheRanks) {
  const auto report = report_of({.ranks = 2}, [](RankContext& ctx) {
    Mlp net;
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    fsdp.forward_with(
        [&](const at::Tensor& x) {
          const auto y = net->first(x);
          if (ctx.rank() == 1) throw std::runtime_error("halfway");
          return net->third(net->second(y));
        },
        batch_of(ctx.rank(), 0));
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::rank_failed);
  EXPECT_EQ(report.headline, "rank 1: halfway");
}

// All ranks fail in the same place, and train on as if nothing had been.
TEST(FsdpReports, ExceptionOnAllRanks_LeavesNothingBehind) {
  run_ranks({.ranks = 2}, [](RankContext& ctx) {
    Mlp net, whole;
    fill(*net);
    fill(*whole);
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear});
    const auto x = batch_of(0, 0);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(error_of<std::runtime_error>([&] {
                  fsdp.forward_with(
                      [&](const at::Tensor& input) -> at::Tensor {
                        net->second(net->first(input));
                        throw std::runtime_error("halfway");
                      },
                      x);
                }),
                "halfway");
      for (const auto& unit : fsdp.units()) EXPECT_FALSE(unit.is_whole);
      EXPECT_TRUE(at::equal(fsdp(x), whole(x)));
    }
  });
}

// A crash in any of the calls of two steps is reported with the unit that the others wait for.
TEST(FsdpReports, CrashInAnyCall_NamesUnitAndRank) {
  const auto train = [](RankContext& ctx) {
    Mlp net;
    FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear, .init_sync = false});
    torch::optim::SGD optimizer(fsdp.parameters(), 0.1);
    for (int i = 0; i < 2; ++i) {
      fsdp.zero_grad();
      fsdp(batch_of(ctx.rank(), i)).square().sum().backward();
      optimizer.step();
    }
  };
  for (int call = 1; call <= 18; ++call) {
    const auto report =
        report_of({.ranks = 3, .faults = {rehearse::parse_fault("crash rank=1 at=#" + std::to_string(call))}}, train);
    EXPECT_EQ(report.verdict, rehearse::Verdict::deadlock) << call;
    EXPECT_THAT(report.headline, HasSubstr("rank 1")) << call;
    EXPECT_THAT(brief(report), HasSubstr("FSDP unit \"")) << call;
  }
}

TEST(FsdpReports, GradientsThatNobodyReduces_AreRemarked) {
  const auto remarks_of = [](bool reduces) {
    std::string text;
    for (const auto& line : report_of({.ranks = 2}, [&](RankContext& ctx) {
                              Mlp net;
                              FullyShardedDataParallel fsdp(net, ctx.group());
                              {
                                const auto guard = fsdp.no_sync();
                                fsdp(batch_of(0, 0)).sum().backward();
                              }
                              if (reduces) fsdp(batch_of(0, 0)).sum().backward();
                            }).remarks)
      text += line + "\n";
    return text;
  };
  EXPECT_THAT(remarks_of(false), HasSubstr("FSDP on group \"world\" has gradients that nobody has reduced, and shards "
                                           "without them. Let the last forward and backward of each step be outside of "
                                           "no_sync()"));
  EXPECT_THAT(remarks_of(true), ::testing::Not(HasSubstr("FSDP")));
}

TEST(FsdpReports, TwoModels_AreToldApart) {
  const auto report = report_of({.ranks = 2}, [](RankContext& ctx) {
    auto a = double_linear(6, 4), b = double_linear(6, 4);
    FullyShardedDataParallel first(a, ctx.group(), {.init_sync = false});
    FullyShardedDataParallel second(b, ctx.group(), {.init_sync = false});
    (ctx.rank() == 0 ? first : second)(batch_of(ctx.rank(), 0));
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::mismatch);
  EXPECT_THAT(report.headline, HasSubstr("FSDP #2 the root unit: parameters"));
}

}  // namespace
