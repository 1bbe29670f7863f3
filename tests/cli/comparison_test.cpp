// SPDX-License-Identifier: BSD-3-Clause
#include "cli/validate/comparison.h"

#include <limits>

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/validate/validation_texts.h"

// Contract: two modes agree if verdicts, culprits, each rank's calls in each group and all results agree.
// Floating-point results may differ by a stated tolerance, integers may not.
namespace rehearse::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

ModeRun run_named(const char* name) {
  ModeRun run;
  run.name = name;
  run.report.ranks = 2;
  run.report.program = "train";
  run.report.operations = 2;
  return run;
}

ModeRun with_results(const char* name, const std::vector<RankResult>& results) {
  auto run = run_named(name);
  run.results = sim::listed_results(results);
  return run;
}

sim::ListedCall call(int rank, std::uint64_t sequence, const char* text, const char* group = "world") {
  return {rank, group, sequence, false, text};
}

TEST(Comparison, OfEqualRuns_Agrees) {
  auto one = with_results("simulation", {{0, "loss", at::full({3}, 0.1)}});
  one.calls = {call(0, 1, "allreduce(sum)"), call(1, 1, "allreduce(sum)")};
  auto other = one;
  other.name = "gloo";
  const auto comparison = compare(one, other, {});
  EXPECT_TRUE(comparison.agrees());
  EXPECT_EQ(comparison.calls.alike, 2u);
  EXPECT_EQ(comparison.results.bit_equal, 1u);
  EXPECT_EQ(validation_text(one, other, comparison),
            "AGREE: simulation and gloo both end as OK\n"
            "         simulation    gloo\n"
            "verdict  OK            OK\n"
            "culprit  nobody        nobody\n"
            "calls    2             2          2 alike\n"
            "results  1             1          1 bit-equal\n"
            "time     0 ns virtual  0 ns real\n"
            "rehearse  program=train ranks=2 seed=0\n");
  other.report.operations = 0;
  EXPECT_THAT(validation_text(one, other, comparison), HasSubstr("time     0 ns virtual  not measured\n"));
}

// A loss may be computed in float32 and stored as a double. The ranks' calls show in which dtypes the run computed.
TEST(Comparison, Tolerance_IsThatOfTheCoarsestDtypeOfTheRun) {
  const auto differences = [](std::vector<std::string> tensors, double other_loss) {
    auto one = with_results("simulation", {{0, "loss", at::full({1}, 1.0, at::kDouble)}});
    auto other = with_results("gloo", {{0, "loss", at::full({1}, other_loss, at::kDouble)}});
    one.calls = other.calls = {call(0, 1, "allreduce(sum)")};
    one.calls[0].tensors = other.calls[0].tensors = std::move(tensors);
    return compare(one, other, {}).results.differences;
  };
  EXPECT_THAT(differences({"in float32[3]", "out float32[3]"}, 1 + 0x1p-22), IsEmpty());
  EXPECT_THAT(differences({"in float32[3]", "out float32[3]"}, 1 + 0x1p-20), ElementsAre(HasSubstr("differs by")));
  EXPECT_THAT(differences({"in float64[3]", "in int64[3]"}, 1 + 0x1p-22), ElementsAre(HasSubstr("differs by")));
  EXPECT_THAT(differences({}, 1 + 0x1p-22), ElementsAre(HasSubstr("differs by")));
  EXPECT_THAT(differences({"in int64[3]", "in bfloat16[]"}, 1 + 0x1p-7), IsEmpty());
}

TEST(Comparison, OtherOrderOfRanks_IsNoDifference_OtherOrderOfCallsIs) {
  auto one = run_named("simulation");
  one.calls = {call(0, 1, "a()"), call(1, 1, "a()"), call(0, 2, "b()"), call(1, 2, "b()")};
  auto other = run_named("gloo");
  other.calls = {call(1, 1, "a()"), call(1, 2, "b()"), call(0, 1, "a()"), call(0, 2, "b()")};
  EXPECT_TRUE(compare(one, other, {}).agrees());
  other.calls = {call(1, 1, "b()"), call(1, 2, "a()"), call(0, 1, "a()"), call(0, 2, "b()")};
  EXPECT_THAT(compare(one, other, {}).calls.differences,
              ElementsAre("rank 1, call 1 in group \"world\": simulation a() as #1, gloo b() as #1"));
}

TEST(Comparison, OfRunsThatFailed_TakesWhatBothCameTo) {
  auto one = run_named("simulation");
  auto other = run_named("gloo");
  one.calls = {call(0, 1, "a()"), call(0, 2, "b()")};
  other.calls = {call(0, 1, "a()")};
  EXPECT_THAT(compare(one, other, {}).calls.differences,
              ElementsAre("rank 0, call 2 in group \"world\": simulation b() as #2, gloo no call"));
  one.report.verdict = other.report.verdict = Verdict::deadlock;
  one.culprits = other.culprits = {1};
  EXPECT_TRUE(compare(one, other, {}).agrees());
  other.culprits = {0};
  EXPECT_THAT(compare(one, other, {}).outcome, ElementsAre("the culprit is rank 1 by simulation, rank 0 by gloo"));
  other.report.verdict = Verdict::timeout;
  EXPECT_THAT(compare(one, other, {}).outcome, ElementsAre("the verdict is DEADLOCK by simulation, TIMEOUT by gloo"));
}

// A simulation ends with the first exception, so it reports one culprit where processes report several.
TEST(Comparison, ExceptionsOfMoreRanks_AreTheSameCulprits) {
  auto one = run_named("simulation");
  auto other = run_named("gloo");
  one.report.verdict = other.report.verdict = Verdict::check_failed;
  one.culprits = {2};
  other.culprits = {1, 2};
  EXPECT_TRUE(compare(one, other, {}).agrees());
  other.culprits = {0, 1};
  EXPECT_FALSE(compare(one, other, {}).agrees());
}

TEST(Comparison, ACrashThatNamesNoRank_AgreesWithOneThatDoes) {
  auto one = run_named("simulation");
  auto other = run_named("gloo");
  one.report.verdict = other.report.verdict = Verdict::crashed;
  other.culprits = {1};
  const auto comparison = compare(one, other, {});
  EXPECT_TRUE(comparison.agrees());
  EXPECT_THAT(validation_text(one, other, comparison), HasSubstr("\nculprit  not known     rank 1\n"));
  one.report.verdict = other.report.verdict = Verdict::rank_failed;
  EXPECT_THAT(compare(one, other, {}).outcome, ElementsAre("the culprit is nobody by simulation, rank 1 by gloo"));
}

TEST(Comparison, OfResults_AllowsTheTolerance) {
  const auto one = with_results("simulation", {{0, "loss", at::full({2}, 1.0, at::kFloat)}});
  const auto near = with_results("gloo", {{0, "loss", at::full({2}, 1.0 + 0x1p-22, at::kFloat)}});
  const auto far = with_results("gloo", {{0, "loss", at::full({2}, 1.25, at::kFloat)}});
  const auto comparison = compare(one, near, {});
  EXPECT_TRUE(comparison.agrees());
  EXPECT_EQ(comparison.results.bit_equal, 0u);
  EXPECT_EQ(comparison.results.within, 1u);
  EXPECT_GT(comparison.results.largest, 0x1p-23);
  EXPECT_FALSE(compare(one, near, 0x1p-24).agrees());
  EXPECT_THAT(
      compare(one, far, {}).results.differences,
      ElementsAre("result \"loss\" (0) of rank 0 differs by 0.2 of its largest number; the tolerance is 4.8e-07"));
  EXPECT_TRUE(compare(one, far, 0.25).agrees());
}

TEST(Comparison, OfResults_TakesIntegersShapesAndNaNExactly) {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const auto one = with_results("simulation", {{0, "count", at::full({1}, 3, at::kLong)},
                                               {0, "loss", at::full({1}, nan)},
                                               {1, "shape", at::full({2, 1}, 1.0)},
                                               {1, "only", at::full({1}, 1.0)}});
  auto other = with_results("gloo", {{0, "count", at::full({1}, 4, at::kLong)},
                                     {0, "loss", at::full({1}, 1.0)},
                                     {1, "shape", at::full({1, 2}, 1.0)}});
  EXPECT_THAT(compare(one, other, 1.0).results.differences,
              ElementsAre("result \"count\" (0) of rank 0 differs, and values of its dtype must be equal",
                          StartsWith("result \"loss\" (0) of rank 0 differs by inf"),
                          HasSubstr("is float32[2, 1] by simulation, float32[1, 2] by gloo"),
                          "result \"only\" (0) of rank 1 was given only by simulation"));
}

// Because of the limit, both files lack the bytes, or only one of them does.
TEST(Comparison, OfResultsWithoutTheirBytes_TakesHashesAndFigures) {
  const auto listed = [](const char* name, const at::Tensor& value, std::size_t limit) {
    auto run = run_named(name);
    run.results = sim::listed_results({{0, "spectrum", value}}, {.tensor_bytes = limit});
    return run;
  };
  const auto numbers = at::view_as_complex(at::arange(8, at::kFloat).view({4, 2}));
  const auto one = listed("simulation", numbers, 1);
  EXPECT_TRUE(compare(one, listed("gloo", numbers.clone(), 1), {}).agrees());
  EXPECT_FALSE(compare(one, listed("gloo", numbers.conj(), 1), {}).agrees());
  EXPECT_FALSE(compare(one, listed("gloo", numbers * 2, 1), {}).agrees());
  const auto counts = at::arange(8, at::kLong);
  const auto whole = compare(listed("simulation", counts, 64), listed("gloo", counts.clone(), 1), {});
  EXPECT_TRUE(whole.agrees());
  EXPECT_EQ(whole.results.bit_equal, 1u);
}

}  // namespace
}  // namespace rehearse::cli
