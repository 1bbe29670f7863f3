// SPDX-License-Identifier: BSD-3-Clause
// Contract: if a job survives a failure, some ranks may have made calls that other ranks then never make. The run is
// OK, and a remark names the calls. Without a failure, a call that some ranks left out is a mismatch as always.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/exec/this_rank.h>

#include "surviving.h"

namespace rehearse::test {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;
using Works = std::vector<Work>;

Works two_reductions(const RankContext& ctx) {
  Works works;
  for (int k = 0; k < 2; ++k) works.push_back(ctx.group().allreduce(at::full({4}, 1.0)));
  return works;
}

Works ring(const RankContext& ctx) {
  Works works;
  works.push_back(ctx.group().recv(at::full({4}, 0.0), (ctx.rank() + ctx.size() - 1) % ctx.size()));
  works.push_back(ctx.group().send(at::full({4}, 1.0), (ctx.rank() + 1) % ctx.size()));
  return works;
}

// If `kept`, the works outlive the exception.
World::Body survives(Works (*begin)(const RankContext&), bool kept) {
  return [=](RankContext& ctx) {
    Works held;
    // Some ranks learn of the failure half an hour before others.
    ctx.store()->setTimeout(std::chrono::hours(2));
    try {
      for (int step = 0; ctx.incarnation() == 0 && step < 5; ++step) {
        Works works = begin(ctx);
        if (kept) held = works;
        for (const auto& work : works) work->wait();
      }
    } catch (const CommError&) {
      exec::this_rank::sleep_for(seconds(1));
    }
    held.clear();
    reduce_anew(ctx);
  };
}

TEST(CallsLeftBehind, ByAJobThatSurvives_AreARemark) {
  for (const std::string fault :
       {"crash rank=3 call=allreduce#5 restart=5ms", "crash rank=3 call=allreduce#6 restart=5ms",
        "fail_op rank=3 call=allreduce#5", "fail_op rank=3 call=allreduce#6"}) {
    for (const bool kept : {false, true}) {
      const auto report = run({fault}, survives(two_reductions, kept));
      EXPECT_EQ(report.verdict, Verdict::ok) << fault << ": " << report.headline;
      EXPECT_EQ(report.checks.at("the new group's sum is right"), 4u);
      if (fault.ends_with('5')) {
        EXPECT_THAT(report.remarks, Contains(HasSubstr("allreduce #6 on group \"world\" of ranks 0-2"))) << fault;
      }
    }
  }
}

TEST(CallsLeftBehind, SendsAndReceivesToo) {
  for (const std::string fault : {"crash rank=3 call=recv#2 restart=5ms", "crash rank=3 call=send#2 restart=5ms",
                                  "fail_op rank=3 call=recv#2", "fail_op rank=3 call=send#2"}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      auto options = world_with({fault});
      options.seed = seed;
      const auto report = run(options, survives(ring, seed % 2 == 0));
      EXPECT_EQ(report.verdict, Verdict::ok) << fault << ": " << report.headline;
    }
  }
}

TEST(CallsLeftBehind, ByRanksThatOneNeverJoins_AreAMismatch) {
  const auto body = [](RankContext& ctx) {
    if (ctx.rank() == 3) return;
    const auto works = two_reductions(ctx);
    EXPECT_THROW(works[0]->wait(), TimeoutError);
  };
  const auto report = run(std::vector<std::string>(), body);
  EXPECT_EQ(report.verdict, Verdict::mismatch) << report.headline;
}

// A call made after the failure was known is not a consequence of the failure.
TEST(CallsLeftBehind, AfterTheFailureWasKnown_AreAMismatch) {
  const auto body = [](RankContext& ctx) {
    try {
      ctx.group().allreduce(at::full({4}, 1.0))->wait();
    } catch (const CommError&) {
      if (ctx.rank() == 0) ctx.group().allreduce(at::full({4}, 1.0));
    }
    if (ctx.rank() == 3) exec::this_rank::sleep_for(std::chrono::hours(3));
  };
  const auto report = run({"fail_op rank=3 call=allreduce#1"}, body);
  EXPECT_EQ(report.verdict, Verdict::mismatch) << report.headline;
}

}  // namespace
}  // namespace rehearse::test
