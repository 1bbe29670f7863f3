// SPDX-License-Identifier: BSD-3-Clause
// Contract: if many ranks all did something different, the report still has few lines, and its files stay small.
#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rehearse/sim/report_writers.h>

#include "dump_maker.h"
#include "report/page/report_page.h"
#include "report/writers/culprits.h"

namespace rehearse::sim {
namespace {

constexpr int kRanks = 600;

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::string page_of(const Report& report) {
  std::ostringstream out;
  write_report_page(out, report, page_run({.report = report, .culprits = culprits_of(report)}));
  return out.str();
}

// Each rank passes another size, and waits for all others.
TEST(ManyRanks, CallsThatAllDiffer_AreFoldedAndCounted) {
  DumpMaker job(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    job.stand_at(10 + rank);
    job.call(rank, "all_reduce", {rank + 1}, false);
  }
  const auto report = job.explained();
  EXPECT_TRUE(report.headline.starts_with("ranks 0, 1, 2, 3, 4, 5, 6, 7 and 592 more disagree at #1 of group "))
      << report.headline;
  ASSERT_EQ(report.differences.size(), 1u);
  const auto& others = report.differences[0].others;
  ASSERT_EQ(others.size(), 63u);
  EXPECT_EQ(others.back().fingerprint, "536 further calls, all different");
  EXPECT_EQ(others.back().ranks.size(), 536u);
  EXPECT_EQ(culprits_of(report).size(), static_cast<std::size_t>(kRanks));
  ASSERT_EQ(report.dumps->stacks.size(), 65u);
  EXPECT_EQ(report.dumps->stacks.back().call, "536 further calls");
  const auto text = to_text(report);
  EXPECT_LT(lines_in(text), 70u) << text;
  EXPECT_NE(text.find("differ in shape ([1], [2], [3], [4], [5], [6], 594 more)\n"), text.npos) << text;
  EXPECT_NE(text.find("  ... and the calls of 594 more ranks\n"), text.npos) << text;
  EXPECT_NE(text.find("... and those of 596 more ranks, see --json\n"), text.npos) << text;
  const auto json = to_json(report);
  EXPECT_LT(json.size(), 600'000u);
  EXPECT_EQ(to_json(report_from_json(json)), json);
  EXPECT_LT(page_of(report).size(), 500'000u);
}

// All sends come from one line, in a ring: rank n to rank n + 1.
TEST(ManyRanks, SendsFromOneLine_AreOneStack) {
  DumpMaker job(kRanks);
  job.stand_at(10);
  for (int rank = 0; rank < kRanks; ++rank)
    job.call(rank, fmt::format("send {}->{}", rank, (rank + 1) % kRanks), {4}, false);
  const auto report = job.explained();
  ASSERT_EQ(report.dumps->stacks.size(), 1u);
  EXPECT_EQ(report.dumps->stacks[0].call, "send #1 to rank 1 on group \"0:default_pg\", and 599 like it");
  EXPECT_EQ(report.dumps->stacks[0].ranks.size(), static_cast<std::size_t>(kRanks));
}

TEST(ManyRanks, UnreceivedMessages_AreCounted) {
  DumpMaker job(2);
  for (int call = 0; call < 40; ++call) job.call(0, "send 0->1", {4});
  const auto remarks = job.explained().remarks;
  ASSERT_EQ(remarks.size(), 17u);
  EXPECT_EQ(remarks.back(), "24 more sends are complete, and nobody received them");
}

}  // namespace
}  // namespace rehearse::sim
