// SPDX-License-Identifier: BSD-3-Clause
// Contract: a test runs a program from a shared object like any other program, with fresh state in every run.
#include <gtest/gtest.h>

#include <rehearse/rehearse.h>

namespace rehearse::test {
namespace {

void counts(RankContext& ctx) { find_program("counts")->spec.body(ctx, {}); }

TEST(ModuleInCheck, EachRankHasItsOwn) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) check({.ranks = 4, .seed = seed}, counts);
}

TEST(ModuleInCheck, OpaqueCodeInAGraph_IsTheRanksOwn) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    for (const int ranks : {2, 5, 3}) {
      check({.ranks = ranks, .seed = seed},
            [](RankContext& ctx) { find_program("runs_opaque_code")->spec.body(ctx, {}); });
    }
  }
}

TEST(ModuleInCheck, CrashedRankKeepsItsCopy) {
  for (int i = 0; i < 3; ++i) {
    const auto report = run({.ranks = 3, .faults = {parse_fault("crash rank=1 at=barrier#2")}}, counts);
    EXPECT_TRUE(has_verdict(report, Verdict::deadlock));
    EXPECT_EQ(report.rank_lines[1].state, RankOutcome::crashed);
  }
}

TEST(ModuleInCheck, PlaceOfACall_IsTheSameForAllRanks) {
  const auto report = run({.ranks = 3, .faults = {parse_fault("hang rank=2 at=barrier#3")}}, counts);
  EXPECT_TRUE(has_verdict(report, Verdict::deadlock));
  EXPECT_TRUE(report.call_places.empty());
  EXPECT_EQ(report.rank_lines[0].where.text, report.rank_lines[1].where.text);
  EXPECT_NE(report.rank_lines[0].where.text.find("counters.cpp:"), std::string::npos)
      << report.rank_lines[0].where.text;
}

}  // namespace
}  // namespace rehearse::test
