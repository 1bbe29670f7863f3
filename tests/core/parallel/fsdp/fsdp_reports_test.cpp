// SPDX-License-Identifier: BSD-3-Clause
// Reports about sharded models name the unit and the rank.
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <rehearse/sim/report_writers.h>

#include "bit_equal.h"
#include "core/parallel/fsdp/fsdp_fixture.h"

namespace {

using namespace rehearse_test;
using rehearse::FullyShardedDataParallel;
using rehearse::RankContext;
using rehearse::UnitPolicy;
using rehearse::test::BitEqual;
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
      EXPECT_THAT(fsdp(x), BitEqual(whole(x)));
    }
  });
}

void take_two_steps(RankContext& ctx) {
  Mlp net;
  FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear, .init_sync = false});
  torch::optim::SGD optimizer(fsdp.parameters(), 0.1);
  for (int i = 0; i < 2; ++i) {
    fsdp.zero_grad();
    fsdp(batch_of(ctx.rank(), i)).square().sum().backward();
    optimizer.step();
  }
}

constexpr int kCallsOfTwoSteps = 18;  // 2 x (3 all-gathers, 3 more in backward, 3 reduce-scatters)

rehearse::Report with_fault(const std::string& verb, int call, const std::string& more) {
  const auto fault = rehearse::parse_fault(verb + " rank=1 call=#" + std::to_string(call) + " " + more);
  return report_of({.ranks = 3, .faults = {fault}}, take_two_steps);
}

TEST(FsdpReports, FaultInAnyCall_NamesUnitAndRankInTheHeadline) {
  const std::vector<std::pair<std::string, std::string>> faults = {{"crash", ""},
                                                                   {"crash", "peers=disconnect"},
                                                                   {"crash", "peers=timeout"},
                                                                   {"exit", ""},
                                                                   {"exit", "peers=disconnect"},
                                                                   {"fail_op", ""},
                                                                   {"hang", ""},
                                                                   {"skip_collective", ""},
                                                                   {"partition", "from=0"},
                                                                   {"pause", "for=1h"},
                                                                   {"delay", "for=1h"}};
  for (const auto& [verb, more] : faults) {
    for (int call = 1; call <= kCallsOfTwoSteps; ++call) {
      const auto report = with_fault(verb, call, more);
      EXPECT_NE(report.verdict, rehearse::Verdict::ok) << verb << " " << more << " " << call;
      EXPECT_THAT(report.headline, HasSubstr("FSDP unit \"")) << verb << " " << more << " " << call;
      EXPECT_THAT(report.headline, ::testing::ContainsRegex("ranks? [0-2]")) << verb << " " << more << " " << call;
    }
    EXPECT_EQ(with_fault(verb, kCallsOfTwoSteps + 1, more + " optional=true").verdict, rehearse::Verdict::ok);
  }
}

TEST(FsdpReports, InjectedErrorOfACall_HasTheUnitInItsText) {
  EXPECT_EQ(with_fault("fail_op", 2, "").headline,
            "rank 1: _allgather_base #2 of \"FSDP unit \"second\": parameters ... second.bias\" on group \"world\" "
            "failed: an injected error of the back end");
}

TEST(FsdpReports, InjectedExit_HasTheUnitInItsText) {
  EXPECT_EQ(with_fault("exit", 2, "status=3").headline,
            "rank 1: exit(3) was called in _allgather_base #2 of \"FSDP unit \"second\": parameters ... second.bias\" "
            "on group \"world\": an injected exit");
}

TEST(FsdpReports, AllocationThatFails_NamesWhatItWasFor) {
  const auto failing = [](const std::string& call) {
    return report_of({.ranks = 3, .faults = {rehearse::parse_fault("fail_alloc rank=1 call=" + call)}}, take_two_steps)
        .headline;
  };
  EXPECT_THAT(failing("_allgather_base#2"), HasSubstr("rank 1: out of memory"));
  EXPECT_THAT(failing("_allgather_base#2"), HasSubstr("while FSDP fills unit \"second\"; whole were: none"));
  EXPECT_THAT(failing("_allgather_base#3"), HasSubstr("while FSDP fills unit \"third\"; whole were: none"));
}

TEST(FsdpReports, UnreducedGradients_AreRemarked) {
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
  EXPECT_THAT(remarks_of(false),
              HasSubstr("FSDP on group \"world\" has gradients that nobody reduced, so its shards lack them. Make the "
                        "last forward and backward of each step outside of no_sync()"));
  EXPECT_THAT(remarks_of(true), ::testing::Not(HasSubstr("FSDP")));
}

// The second forward throws after it has launched the next unit's all-gather.
TEST(FsdpReports, CallOfAModelThatIsGone_KeepsItsUnit) {
  const auto report = report_of({.ranks = 2}, [](RankContext& ctx) {
    {
      Mlp net;
      FullyShardedDataParallel fsdp(net, ctx.group(), {.units = kEachLinear, .init_sync = false});
      fsdp(batch_of(0, 0));
      EXPECT_EQ(error_of<std::runtime_error>([&] {
                  fsdp.forward_with(
                      [&](const at::Tensor& x) -> at::Tensor {
                        net->first(x);
                        throw std::runtime_error("halfway");
                      },
                      batch_of(0, 0));
                }),
                "halfway");
    }
    if (ctx.rank() == 0) ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::deadlock);
  EXPECT_THAT(rehearse::sim::to_text(report), HasSubstr("_allgather_base #5 of \"FSDP unit \"second\": parameters"));
}

TEST(FsdpReports, TwoModels_AreDistinguished) {
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
