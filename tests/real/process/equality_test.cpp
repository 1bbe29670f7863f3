// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "launched_job.h"

// Contract: a job gives the same results in processes as in simulation, and its log the same calls, of the same
// numbers, in the same order, under the same labels; with and without the checks.
namespace rehearse::test {
namespace {

// Sums of numbers with all bits in use: gloo adds in another order.
constexpr double kRounding = 1e-5;

void expect_equal(const RankRun& real, const RankRun& simulated, bool exact) {
  ASSERT_TRUE(real.report.has_value()) << real.output;
  EXPECT_EQ(real.report->verdict, Verdict::ok) << real.report->headline;
  EXPECT_EQ(real.exit_code, 0);
  EXPECT_EQ(simulated.report->verdict, Verdict::ok) << simulated.report->headline;
  EXPECT_EQ(real.events, simulated.events);
  ASSERT_EQ(real.results.size(), simulated.results.size());
  for (std::size_t i = 0; i < real.results.size(); ++i) {
    EXPECT_TRUE(exact ? at::equal(real.results[i], simulated.results[i])
                      : at::allclose(real.results[i], simulated.results[i], kRounding))
        << "result " << i << ":\n"
        << real.results[i] << "\nsimulated:\n"
        << simulated.results[i];
  }
}

struct Setting {
  int ranks;
  const char* checks;
};

class Equality : public testing::TestWithParam<Setting> {
 protected:
  static void run(const std::string& job, bool exact = true) {
    const auto [ranks, checks] = GetParam();
    const auto real =
        run_processes(job, ranks, {std::string("REHEARSE_CHECKS=") + checks, "REHEARSE_CHECK_TIMEOUT=60"});
    const auto simulated = simulate(job, ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      SCOPED_TRACE(rank);
      expect_equal(real[static_cast<std::size_t>(rank)], simulated[static_cast<std::size_t>(rank)], exact);
    }
  }
};

TEST_P(Equality, Reductions_AreEqual) { run("reductions"); }
TEST_P(Equality, Copies_AreEqual) { run("copies"); }
TEST_P(Equality, Messages_AreEqual) { run("messages"); }
TEST_P(Equality, Groups_AreEqual) { run("groups"); }
TEST_P(Equality, CoalescedCalls_AreEqual) { run("coalesced"); }
TEST_P(Equality, SplitGroups_AreEqual) { run("splits"); }
TEST_P(Equality, MeetingsOfCompile_AreEqual) { run("compiled"); }
TEST_P(Equality, DataParallelTraining_IsEqual) {
  const bool is_power_of_two = GetParam().ranks != 3;  // means are exact
  run("training", is_power_of_two);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Equality,
                         testing::Values(Setting{2, "1"}, Setting{3, "1"}, Setting{3, "0"}, Setting{8, "1"}),
                         [](const auto& info) {
                           return std::to_string(info.param.ranks) +
                                  (info.param.checks[0] == '1' ? "_checked" : "_unchecked");
                         });

TEST(StoreOfALauncher, ServesAJobAsRank0Does) {
  const auto real = run_processes("reductions", 2, {"REHEARSE_CHECK_TIMEOUT=60"}, Store::of_launcher);
  const auto simulated = simulate("reductions", 2);
  for (std::size_t rank = 0; rank < 2; ++rank) expect_equal(real[rank], simulated[rank], true);
}

}  // namespace
}  // namespace rehearse::test
