// SPDX-License-Identifier: BSD-3-Clause
#include <bit>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bit_equal.h"
#include "launched_job.h"

// Contract: a job gives the same results in processes as in simulation. Its log has the same calls with the same
// numbers, order and labels. Both statements hold with and without the checks.
namespace rehearse::test {
namespace {

// The tolerance for sums of numbers with all bits in use, because gloo adds in another order.
constexpr double kRounding = 1e-5;

void expect_equal(const std::string& job, const Tensors& real, const Tensors& simulated, bool exact) {
  ASSERT_EQ(real.size(), simulated.size()) << job;
  if (exact) {
    EXPECT_THAT(real, BitEqual(simulated)) << job;
    return;
  }
  for (std::size_t i = 0; i < real.size(); ++i) {
    EXPECT_TRUE(at::allclose(real[i], simulated[i], kRounding)) << job << ", result " << i << ":\n"
                                                                << real[i] << "\nsimulated:\n"
                                                                << simulated[i];
  }
}

void expect_equal(const std::vector<RankRun>& real, const std::vector<RankRun>& simulated) {
  const bool means_are_exact = std::has_single_bit(real.size());
  for (std::size_t rank = 0; rank < real.size(); ++rank) {
    SCOPED_TRACE(rank);
    ASSERT_TRUE(real[rank].report.has_value()) << real[rank].output;
    EXPECT_EQ(real[rank].report->verdict, Verdict::ok) << real[rank].report->headline;
    EXPECT_EQ(real[rank].exit_code, 0);
    EXPECT_EQ(simulated[rank].report->verdict, Verdict::ok) << simulated[rank].report->headline;
    EXPECT_EQ(real[rank].events, simulated[rank].events);
    ASSERT_EQ(real[rank].results.size(), simulated[rank].results.size());
    for (const auto& [job, tensors] : simulated[rank].results)
      expect_equal(job, real[rank].results.at(job), tensors, job != "training" || means_are_exact);
  }
}

struct Setting {
  int ranks;
  const char* checks;
};

class Equality : public testing::TestWithParam<Setting> {};

TEST_P(Equality, OfEveryJob_InResultsAndCalls) {
  const auto [ranks, checks] = GetParam();
  JobNames jobs;
  for (const auto& job : collective_jobs()) jobs.push_back(job.name);
  expect_equal(run_processes(jobs, ranks, {std::string("REHEARSE_CHECKS=") + checks, "REHEARSE_CHECK_TIMEOUT=60"}),
               simulate(jobs, ranks));
}

INSTANTIATE_TEST_SUITE_P(Ranks, Equality,
                         testing::Values(Setting{2, "1"}, Setting{3, "1"}, Setting{3, "0"}, Setting{8, "1"}),
                         [](const auto& info) {
                           return std::to_string(info.param.ranks) +
                                  (info.param.checks[0] == '1' ? "_checked" : "_unchecked");
                         });

TEST(StoreOfALauncher, ServesAJobAsRank0Does) {
  expect_equal(run_processes({"reductions"}, 2, {"REHEARSE_CHECK_TIMEOUT=60"}, Store::of_launcher),
               simulate({"reductions"}, 2));
}

}  // namespace
}  // namespace rehearse::test
