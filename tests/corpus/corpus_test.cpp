// SPDX-License-Identifier: BSD-3-Clause
// Contract: for programs with the mistakes of published bug reports, a run reports verdict, rank, operation and line,
// on every schedule that shows the mistake. The corrected programs run without findings.
#include <cstdlib>
#include <ostream>
#include <set>
#include <string>

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/sim/report_writers.h>

#include "entry.h"
#include "places.h"
#include "report/writers/culprits.h"

namespace corpus {

void PrintTo(const Entry& entry, std::ostream* out) { *out << entry.report; }

namespace {

constexpr int kFaultySchedules = 6;
constexpr int kRacySchedules = 50;

// On how many schedules each corrected program runs: 50, or REHEARSE_CORPUS_SCHEDULES of the environment.
int correct_schedules() {
  const char* const wanted = std::getenv("REHEARSE_CORPUS_SCHEDULES");
  return wanted != nullptr ? std::atoi(wanted) : 50;
}

// Each seed has another schedule. Seed 1 is round robin. Even seeds also switch at calls that do not block.
WorldOptions scheduled(WorldOptions options, int seed) {
  options.seed = static_cast<std::uint64_t>(seed);
  options.preempt = seed % 2 == 0;
  if (seed == 1) options.schedule = rehearse::Schedule::round_robin;
  return options;
}

WorldOptions of_a_sweep(WorldOptions options) {
  rehearse::sim::take(rehearse::sim::strategy_among_many(options, {}), options);
  return options;
}

// Behind a corrected program, to show that the checkers looked: rank 0 changes a tensor that is in flight.
void touch_in_flight(RankContext& ctx) {
  auto tensor = at::ones({2});
  const auto work = ctx.group().allreduce(tensor);
  if (ctx.rank() == 0) tensor.mul_(2);
  work->wait();
}

rehearse::Report run(const Entry& entry, bool corrected, int seed, void (*behind)(RankContext&) = nullptr) {
  auto options = corrected && entry.corrected_options ? *entry.corrected_options : entry.options;
  if (corrected) options.checks.replicas = options.checks.finite = true;  // checks that could give false alarms
  if (corrected) options.check_buffers = options.check_sharing = true;
  const bool as_in_a_sweep = corrected && seed % 4 >= 2;
  options.seed = static_cast<std::uint64_t>(seed);
  options = as_in_a_sweep ? of_a_sweep(options) : scheduled(options, seed);
  rehearse::World world(options);
  return world.run([&entry, corrected, behind](RankContext& ctx) {
    entry.program(ctx, corrected);
    if (behind != nullptr) behind(ctx);
  });
}

bool is_silent(const rehearse::Report& report) { return report.verdict == Verdict::ok && report.remarks.empty(); }

void expect_diagnosis(const Entry& entry, const rehearse::Report& report) {
  const auto marked = marked_line(entry.report);
  const auto place = marked.file + ":" + std::to_string(marked.line);
  const auto told = report.verdict != Verdict::ok || report.remarks.empty() ? report.headline : report.remarks.front();
  EXPECT_EQ(report.verdict, entry.verdict) << report.headline;
  EXPECT_LE(report.remarks.size(), 1u);
  EXPECT_TRUE(fits(told, with_place(entry.headline, place))) << told << "\nis not\n"
                                                             << with_place(entry.headline, place);
  EXPECT_TRUE(entry.evidence.empty() || says(report, with_place(entry.evidence, place)))
      << entry.evidence << " is not in\n"
      << rehearse::sim::to_text(report);
  if (!entry.culprits.empty()) {
    EXPECT_EQ(rehearse::sim::culprits_of(report), entry.culprits);
  }
  EXPECT_TRUE(leads_to(report, place)) << place << " is not in\n" << rehearse::sim::to_text(report);
}

class Corpus : public testing::TestWithParam<Entry> {};

TEST_P(Corpus, AsReported_IsDiagnosed) {
  const auto& entry = GetParam();
  if (!entry.is_wrong() || !entry.on_every_schedule) return;
  for (int seed = 1; seed <= kFaultySchedules && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_diagnosis(entry, run(entry, false, seed));
  }
}

TEST_P(Corpus, Race_IsDiagnosedWhereItHappens) {
  const auto& entry = GetParam();
  if (entry.on_every_schedule) return;
  int found = 0;
  for (int seed = 1; seed <= kRacySchedules && !HasFailure(); ++seed) {
    const auto report = run(entry, false, seed);
    if (is_silent(report)) continue;
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_diagnosis(entry, report);
    ++found;
  }
  EXPECT_GT(found, 0);
  EXPECT_LT(found, kRacySchedules) << "every schedule finds it";
}

TEST_P(Corpus, Corrected_IsSilent) {
  for (int seed = 1; seed <= correct_schedules() && !HasFailure(); ++seed) {
    const auto report = run(GetParam(), true, seed);
    EXPECT_TRUE(is_silent(report)) << "seed " << seed << "\n" << rehearse::sim::to_text(report);
  }
}

// Where a fault or a cut network keeps the ranks apart, the call behind the program fails in another way.
TEST_P(Corpus, CorrectedWithAMistakeBehind_IsNotSilent) {
  const auto& entry = GetParam();
  const auto report = run(entry, true, 1, touch_in_flight);
  const bool is_whole = (entry.corrected_options ? *entry.corrected_options : entry.options).faults.empty();
  EXPECT_NE(report.verdict, Verdict::ok) << report.headline;
  if (is_whole && report.verdict == Verdict::check_failed) {
    EXPECT_TRUE(report.headline.find("aten::mul_") != std::string::npos) << report.headline;
  }
}

TEST_P(Corpus, Mark_IsInOneLine) { EXPECT_GT(marked_line(GetParam().report).line, 0); }

INSTANTIATE_TEST_SUITE_P(Reports, Corpus, testing::ValuesIn(all_entries()),
                         [](const auto& entry) { return std::string(entry.param.report); });

TEST(CorpusTexts, HeadlinesFit_WhereStarsAreAnything) {
  EXPECT_TRUE(fits("rank 1 waits in recv", "rank * waits in *"));
  EXPECT_TRUE(fits("abc", "abc"));
  EXPECT_TRUE(fits("a-b-b", "a*b"));
  EXPECT_FALSE(fits("abc", "ab"));
  EXPECT_FALSE(fits("rank 1 waits", "rank *sends*"));
  EXPECT_EQ(with_place("at {} and {}", "train.cpp:3"), "at train.cpp:3 and train.cpp:3");
}

}  // namespace
}  // namespace corpus
