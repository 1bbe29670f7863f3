// SPDX-License-Identifier: BSD-3-Clause
// Contract: a report leads from the mistake to the culprit and its line, and says only what is true.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "world_report.h"
#include "wrong_programs.h"

namespace rehearse::golden {
namespace {

using testing::MatchesRegex;
using namespace wrong_programs;

TEST(WrongPrograms, RankOversleeps_ItsSleepIsWhereTheUserCalledIt) {
  const auto report = run_world(oversleeps, 2);
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_THAT(report.rank_lines[1].where, MatchesRegex("wrong_programs.cpp:.* in wrong_programs::oversleeps"));
  expect_golden_report(report, "oversleeps");
}

TEST(WrongPrograms, PeerThatDoesNotExist_TheErrorIsWhereTheUserCalled) {
  const auto report = run_world(sends_to_nobody, 2);
  EXPECT_EQ(report.verdict, Verdict::rank_failed);
  EXPECT_THAT(report.rank_lines[1].where, MatchesRegex("wrong_programs.cpp:.* in wrong_programs::sends_to_nobody"));
  expect_golden_report(report, "sends_to_nobody");
}

}  // namespace
}  // namespace rehearse::golden
