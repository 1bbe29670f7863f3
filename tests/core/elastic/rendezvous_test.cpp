// SPDX-License-Identifier: BSD-3-Clause
// Contract: ranks agree, once and for all, which of them go on in which round. A rank that comes late joins the next
// round.
#include <chrono>
#include <map>
#include <string>

#include <rehearse/elastic/rendezvous.h>
#include <rehearse_internal/exec/this_rank.h>

#include "elastic_world.h"

namespace rehearse::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Report run_ranks(int ranks, const World::Body& body, std::uint64_t seed = 1) {
  World world(elastic_world({}, ranks, seed));
  return world.run(body);
}

TEST(Rendezvous, AllRanks_AreTheFirstRound) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto report = run_ranks(
        8,
        [](RankContext& ctx) {
          elastic::Rendezvous rendezvous(ctx);
          for (int round = 0; round < 3; ++round) {
            const auto members = rendezvous.next();
            EXPECT_EQ(members.round, round);
            EXPECT_EQ(members.ranks, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
          }
        },
        seed);
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
    EXPECT_EQ(report.end_time, VirtualTime());
  }
}

TEST(Rendezvous, LastCall_LeavesOutLaterRanks) {
  std::map<int, std::vector<std::vector<int>>> rounds;
  const auto report = run_ranks(4, [&](RankContext& ctx) {
    elastic::Rendezvous rendezvous(ctx, {.min_ranks = 2, .last_call = seconds(1)});
    if (ctx.rank() == 3) exec::this_rank::sleep_for(seconds(10));
    auto& own = rounds[ctx.rank()];
    own.push_back(rendezvous.next().ranks);
    if (ctx.rank() == 3) return;
    EXPECT_EQ(ctx.now(), VirtualTime(seconds(1)));
    EXPECT_EQ(rendezvous.num_waiting(0), 0);
    exec::this_rank::sleep_for(milliseconds(9'100));
    EXPECT_EQ(rendezvous.num_waiting(0), 1);
    exec::this_rank::sleep_for(milliseconds(100));
    own.push_back(rendezvous.next().ranks);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  const std::vector<int> three{0, 1, 2}, all{0, 1, 2, 3};
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(rounds[rank], (std::vector<std::vector<int>>{three, all}));
  EXPECT_EQ(rounds[3], std::vector<std::vector<int>>{all});
}

TEST(Rendezvous, TooFewRanks_IsATimeoutThatNamesThem) {
  std::string said;
  const auto report = run_ranks(4, [&](RankContext& ctx) {
    if (ctx.rank() % 2 == 1) return;
    elastic::Rendezvous rendezvous(ctx, {.min_ranks = 3, .last_call = milliseconds(10), .join = milliseconds(500)});
    try {
      rendezvous.next();
    } catch (const elastic::RendezvousTimeoutError& error) {
      said = error.what();
    }
    EXPECT_EQ(ctx.now(), VirtualTime(milliseconds(500)));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(said,
            "round 0 of the rendezvous was not complete within 500 ms: it needs 3 of 4 ranks, and ranks 0,2 came");
}

TEST(Rendezvous, Closed_IsReportedToWaitingAndLateRanks) {
  int told = 0;
  const auto report = run_ranks(3, [&](RankContext& ctx) {
    elastic::Rendezvous rendezvous(ctx);
    if (ctx.rank() == 0) {
      exec::this_rank::sleep_for(seconds(1));
      rendezvous.close();
      return rendezvous.close();
    }
    if (ctx.rank() == 2) exec::this_rank::sleep_for(seconds(2));
    try {
      rendezvous.next();
    } catch (const elastic::RendezvousClosedError&) {
      ++told;
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(told, 2);
}

TEST(Rendezvous, OptionsThatMakeNoSense_AreRefused) {
  run_ranks(2, [](RankContext& ctx) {
    const auto error_of = [&](const elastic::RendezvousOptions& options) -> std::string {
      try {
        elastic::Rendezvous rendezvous(ctx, options);
        return "taken";
      } catch (const std::invalid_argument& error) {
        return error.what();
      }
    };
    EXPECT_EQ(error_of({.min_ranks = 3}),
              "RendezvousOptions::min_ranks is 3; it is 0 (all) to 2, the ranks of the job");
    EXPECT_EQ(error_of({.last_call = milliseconds(-1)}), "RendezvousOptions::last_call is -1; it is 0 ms or more");
    EXPECT_EQ(error_of({.join = milliseconds(-1)}),
              "RendezvousOptions::join is -1; it is 0 ms (by the store's timeout) or more");
  });
}

}  // namespace
}  // namespace rehearse::test
