// SPDX-License-Identifier: BSD-3-Clause
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/grammar/seed_range.h"
#include "cli/sweep/bugs.h"
#include "cli/sweep/junit.h"

// Contract: a seed range covers exactly the seeds that it names. Two reports count as one bug if they differ only in
// ranks and in numbers other than line numbers of source code. JUnit files are well-formed whatever a program prints.
namespace rehearse::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SeedRange, TakesTwoSeedsOrOne) {
  const auto range = parse_seed_range("3..0x10");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 3u);
  EXPECT_EQ(range->last, 16u);
  EXPECT_EQ(range->count(), 14u);
  EXPECT_EQ(to_string(*range), "3..16");
  EXPECT_EQ(to_string(parse_seed_range("7").value()), "7");
  EXPECT_EQ(parse_seed_range("18446744073709551615..18446744073709551615")->count(), 1u);
}

TEST(SeedRange, RefusesEverythingElse) {
  for (const char* text :
       {"", "..", "1..", "..9", "9..1", "1...9", "1..2..3", "a..b", "-1..3", "1-9", "0..1000000000"}) {
    EXPECT_FALSE(parse_seed_range(text)) << text;
  }
}

Report deadlock(int missing, int step) {
  Report report;
  report.verdict = Verdict::deadlock;
  report.headline = "allreduce #" + std::to_string(step) + ": rank " + std::to_string(missing) + " ended";
  for (int rank = 0; rank < 4; ++rank) {
    RankLine line;
    line.rank = rank;
    line.state = rank == missing ? RankOutcome::returned : RankOutcome::blocked;
    if (rank != missing) {
      line.doing = "allreduce #" + std::to_string(step) +
                   " on group \"fc1\" (3 of 4 ranks have called it; missing: " + std::to_string(missing) + ", 9)";
      line.where = "train.cpp:41 in step";
    }
    report.rank_lines.push_back(line);
  }
  return report;
}

TEST(Culprit, IsWithoutRanksAndNumbers) {
  EXPECT_THAT(
      culprit(deadlock(2, 7)),
      ElementsAre("allreduce # on group \"fc1\" (# of # ranks have called it; missing: #)  at train.cpp:41 in step"));
  EXPECT_EQ(culprit(deadlock(2, 7)), culprit(deadlock(0, 1234)));
}

TEST(Culprit, IsWithoutSigns) {
  const auto found = [](const std::string& values) {
    Report report = deadlock(2, 7);
    report.verdict = Verdict::check_failed;
    report.headline = "replicas differ: rank 1 has a different \"w\" at [0]: " + values;
    report.findings.push_back({report.headline, {1}, {}});
    return culprit(report);
  };
  EXPECT_EQ(found("-0.5, not 0.25"), found("3e-05, not -nan"));
  EXPECT_EQ(found("-inf, not 1"), found("2, not nan"));
  EXPECT_EQ(found("is hash #a87c57dcdfdfd3d"), found("is hash #6b2c3d41"));
  EXPECT_NE(found("of fc1"), found("of fc2"));
}

TEST(Culprit, OfAMismatch_IsBothCallsInEitherOrder) {
  Report report;
  report.verdict = Verdict::mismatch;
  const Difference::Side left{{1}, "allreduce(sum, float32[9], cpu)", "a.cpp:1 in f"};
  const Difference::Side right{{3}, "allreduce(sum, float32[], cpu)", "a.cpp:2 in f"};
  report.differences.push_back({"world", 19, left, right, {}, {}});
  Report other = report;
  std::swap(other.differences[0].first, other.differences[0].second);
  EXPECT_EQ(culprit(report), culprit(other));
  EXPECT_THAT(culprit(report), ElementsAre("allreduce(sum, float32[#], cpu)  at a.cpp:1 in f",
                                           "allreduce(sum, float32[], cpu)  at a.cpp:2 in f"));
}

Report ended(Verdict verdict, RankOutcome state, const std::string& doing, const std::string& where) {
  Report report;
  report.verdict = verdict;
  RankLine line;
  line.rank = 1;
  line.state = state;
  line.doing = doing;
  line.where = where;
  report.rank_lines.push_back(line);
  return report;
}

TEST(Culprit, OfATimeLimit_IsThePlaces) {
  auto report = ended(Verdict::interrupted, RankOutcome::stopped, "", "train.cpp:41 in step");
  report.rank_lines.push_back(report.rank_lines[0]);
  report.rank_lines[1].state = RankOutcome::blocked;
  report.rank_lines[1].doing = "allreduce #7 on group \"world\" (1 of 2 ranks has called it)";
  EXPECT_THAT(culprit(report), ElementsAre("at train.cpp:41 in step"));
  report.rank_lines[0].state = RankOutcome::returned;
  report.rank_lines[0].where = "train.cpp:50 in train";
  EXPECT_THAT(culprit(report), ElementsAre("at train.cpp:41 in step"));
}

std::size_t count_of_bugs(const std::vector<Report>& failures) {
  SeedResults results;
  for (const auto& failure : failures) {
    const auto seed = results.size();
    results[seed].failure = std::make_unique<Report>(failure);
  }
  return bugs_of(results).size();
}

TEST(Bugs, EndlessLoopsOfDifferentLines_AreTwo) {
  const auto loop = ended(Verdict::interrupted, RankOutcome::stopped, "", "train.cpp:41 in step");
  EXPECT_EQ(count_of_bugs({loop, loop}), 1u);
  EXPECT_EQ(count_of_bugs({loop, ended(Verdict::interrupted, RankOutcome::stopped, "", "train.cpp:52 in step")}), 2u);
}

TEST(Bugs, CrashesAtDifferentLines_AreTwo) {
  const std::string how = "SIGSEGV (Segmentation fault)";
  const auto fault = ended(Verdict::crashed, RankOutcome::failed, how, "a.cpp:1 in f");
  EXPECT_EQ(count_of_bugs({fault, fault}), 1u);
  EXPECT_EQ(count_of_bugs({fault, ended(Verdict::crashed, RankOutcome::failed, how, "a.cpp:2 in f")}), 2u);
}

TEST(Bugs, OfOneFindingWithOtherRanksElsewhere_AreOne) {
  const auto found = [](const std::string& headline, RankOutcome other) {
    auto report = ended(Verdict::check_failed, other, "allreduce #3 on group \"world\"", "a.cpp:9 in f");
    report.headline = headline;
    report.causes = {{Cause::Kind::found_at_fault, {1}}};
    return report;
  };
  const auto first = found("rank 1: aten::add at a.cpp:41 in f reads the output of recv #5", RankOutcome::blocked);
  EXPECT_THAT(culprit(first), ElementsAre("rank #: aten::add at a.cpp:41 in f reads the output of recv #"));
  const auto later = found("rank 0: aten::add at a.cpp:41 in f reads the output of recv #7", RankOutcome::stopped);
  const auto other = found("rank 1: aten::add at a.cpp:52 in f reads the output of recv #5", RankOutcome::blocked);
  EXPECT_EQ(count_of_bugs({first, later}), 1u);
  EXPECT_EQ(count_of_bugs({first, other}), 2u);
}

TEST(Bugs, OfOneRankAndOfSeveral_AreOne) {
  const auto found = [](const std::string& headline) {
    Report report;
    report.verdict = Verdict::check_failed;
    report.headline = headline;
    return report;
  };
  EXPECT_EQ(count_of_bugs({found("rank 1 has a different \"w\" than ranks 0,2"),
                           found("ranks 1-2 have a different \"w\" than rank 0")}),
            1u);
}

// A text leaves out tag 0.
TEST(Bugs, OfMessagesWithOtherTags_AreOne) {
  const auto with_tag = [](const char* tag) {
    auto report = std::make_unique<Report>();
    report->verdict = Verdict::check_failed;
    report->headline = std::string("rank 0: fill_ at job.cpp:9 writes the input of send #3 to rank 1") + tag;
    report->causes = {{Cause::Kind::found_at_fault, {0}}};
    return report;
  };
  SeedResults results;
  results[1].failure = with_tag("");
  results[2].failure = with_tag(" with tag 7");
  EXPECT_EQ(bugs_of(results).size(), 1u);
}

// Whether a place has the callers of a helper depends on how far other calls of the helper have come.
TEST(Bugs, OfAHelperWithAndWithoutItsCallers_AreOne) {
  const auto found = [](const std::string& callers) {
    Report report;
    report.verdict = Verdict::mismatch;
    Difference difference;
    difference.first = {{0}, "barrier()", Place("job.cpp:3 in sync" + callers)};
    difference.second = {{1}, "allreduce()", Place("job.cpp:9 in step")};
    report.differences = {difference};
    return report;
  };
  EXPECT_EQ(count_of_bugs({found(""), found(", from job.cpp:7 in main")}), 1u);
  EXPECT_EQ(count_of_bugs({found(", from job.cpp:8 in main"), found(", from job.cpp:7 in main")}), 2u);
}

TEST(Bugs, OfACallThatReadsOnOneRankAndWritesOnOthers_AreOne) {
  const auto found = [](const std::string& what) {
    Report report;
    report.verdict = Verdict::check_failed;
    report.headline = "rank 0: broadcast #2 at job.cpp:9 " + what + " the tensor of allreduce #1";
    report.causes = {{Cause::Kind::found_at_fault, {0}}};
    return report;
  };
  EXPECT_EQ(count_of_bugs({found("reads"), found("writes")}), 1u);
}

TEST(Bugs, OfWaitsWithAndWithoutThePlaceOfTheirCall_AreOne) {
  const auto waits = [](const std::string& doing, const std::string& where) {
    Report report;
    report.verdict = Verdict::deadlock;
    report.rank_lines.resize(1);
    report.rank_lines[0].state = RankOutcome::blocked;
    report.rank_lines[0].doing = doing;
    report.rank_lines[0].where = where;
    return report;
  };
  const std::string get = "store add of 0 to key \"k\"", at = "job.cpp:9 in step";
  EXPECT_EQ(count_of_bugs({waits(get, at), waits(get + ", polled without a change", at)}), 1u);
  EXPECT_EQ(count_of_bugs({waits("send #1", at), waits("send #1", at + ", called at job.cpp:7 in step")}), 1u);
}

TEST(Bugs, OfAWriteThroughAPointerAtAnotherTime_AreOne) {
  const auto found = [](const std::string& when) {
    Report report;
    report.verdict = Verdict::check_failed;
    report.headline = "rank 1: the tensor of allreduce #1 changed " + when + ", and no operator of the rank wrote it";
    report.causes = {{Cause::Kind::found_at_fault, {1}}};
    return report;
  };
  EXPECT_EQ(count_of_bugs({found("while the call was under way"),
                           found("after the call had moved its data and before rank 1 waited for the call")}),
            1u);
}

TEST(Bugs, OfOneLineThatMadeStateWrong_AreOne) {
  const auto found = [](const std::string& headline, const Place& where) {
    Report report;
    report.verdict = Verdict::check_failed;
    report.headline = headline;
    report.findings.push_back({headline, {2}, {}, where});
    return report;
  };
  const std::string of_weight = "\"w\" of rank 1 is not finite", of_gradient = "\"g\" of rank 2 is not finite";
  EXPECT_EQ(count_of_bugs({found(of_weight, "job.cpp:9 in step"), found(of_gradient, "job.cpp:9 in step")}), 1u);
  EXPECT_EQ(count_of_bugs({found(of_weight, "job.cpp:9 in step"), found(of_weight, "job.cpp:8 in step")}), 2u);
}

TEST(Bugs, OfTimesInOtherUnits_AreOne) {
  Report report;
  report.verdict = Verdict::ok;
  report.headline = "expected DEADLOCK: 3 ranks returned after 20 us of virtual time";
  Report later = report;
  later.headline = "expected DEADLOCK: 3 ranks returned after 1.02 ms of virtual time";
  EXPECT_EQ(count_of_bugs({report, later}), 1u);
}

TEST(Bugs, OfATimeoutToWhichAnotherRankComesLate_AreOne) {
  Report report;
  report.verdict = Verdict::timeout;
  report.rank_lines = {
      {1, RankOutcome::failed, {}, "allreduce #2: Timed out waiting 20ms", "", "job.cpp:4 in step", {2}}};
  Report late = report;
  late.rank_lines.push_back({0,
                             RankOutcome::failed,
                             {},
                             "allreduce #2 is over: it timed out on rank 1 at 20 ms",
                             "",
                             "job.cpp:4 in step",
                             {}});
  EXPECT_EQ(count_of_bugs({report, late}), 1u);
}

TEST(SharedRemarks, OfOneRankAndOfSeveral_AreOneWithoutTheRanks) {
  SeedResults results;
  results[1].remarks = {"ranks 0-1: calls come from several threads"};
  results[2].remarks = {"rank 2: calls come from several threads"};
  const auto remarks = remarks_of(results);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0].text, "calls come from several threads");
}

TEST(SharedRemarks, WithOtherNumbers_HaveNone) {
  SeedResults results;
  results[1].remarks = {"rank 0 got 3 of 16 elements", "alike 4"};
  results[2].remarks = {"rank 0 got 6 of 16 elements", "alike 4"};
  const auto remarks = remarks_of(results);
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_EQ(remarks[0].text, "rank # got # of # elements");
  EXPECT_EQ(remarks[1].text, "alike 4");
  EXPECT_EQ(remarks[0].seeds, (std::vector<std::uint64_t>{1, 2}));
}

TEST(Bugs, WithoutRanks_AreDistinguishedByTheirHeadlines) {
  Report report;
  report.verdict = Verdict::crashed;
  report.headline = "ended after 3.5e-2 s at 0x7ffe12";
  Report later = report, other = report;
  later.headline = "ended after 4 s at 0x7ffe99";
  other.headline = "ended by SIGKILL";
  EXPECT_THAT(culprit(report), ElementsAre());
  EXPECT_EQ(count_of_bugs({report, later}), 1u);
  EXPECT_EQ(count_of_bugs({report, other}), 2u);
}

TEST(Bugs, FortyFailuresOfTwoBugs_AreTwo) {
  SeedResults results;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    auto& result = results[seed];
    if (seed % 5 == 0) continue;
    Report report = deadlock(static_cast<int>(seed % 4), static_cast<int>(seed));
    if (seed % 2 == 0) report.verdict = Verdict::timeout;
    result.failure = std::make_unique<Report>(report);
  }
  const auto bugs = bugs_of(results);
  ASSERT_EQ(bugs.size(), 2u);
  EXPECT_EQ(bugs[0].seeds.size() + bugs[1].seeds.size(), 40u);
  EXPECT_EQ(bugs[0].first->verdict, Verdict::deadlock);
  EXPECT_EQ(bugs[0].seeds.front(), 1u);
  EXPECT_EQ(bugs[1].seeds.front(), 2u);
}

TEST(Junit, IsWellFormedWhateverAProgramSays) {
  SeedResults results;
  results[1].seconds = 0.25;
  Report report;
  report.verdict = Verdict::rank_failed;
  report.headline = "rank 0: a < b && \"c\" \x01\xff>";
  results[2].seconds = 1;
  results[2].failure = std::make_unique<Report>(report);
  std::ostringstream out;
  write_junit(out, "job", results);
  const std::string text = out.str();
  EXPECT_THAT(text, HasSubstr("<testsuite name=\"job\" tests=\"2\" failures=\"1\" errors=\"0\" time=\"1.250\">\n"
                              "    <testcase classname=\"job\" name=\"seed 1\" time=\"0.250\"/>\n"
                              "    <testcase classname=\"job\" name=\"seed 2\" time=\"1.000\">\n"
                              "      <failure type=\"RANK FAILED\" message=\"rank 0: a &lt; b &amp;&amp; "
                              "&quot;c&quot; \\x01\\xff&gt;\">RANK FAILED: rank 0: a &lt; b"));
  EXPECT_THAT(text, HasSubstr("</failure>\n    </testcase>\n  </testsuite>\n</testsuites>\n"));
}

}  // namespace
}  // namespace rehearse::cli
