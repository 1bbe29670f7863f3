// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>

#include <csignal>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bit_equal.h"
#include "launched_job.h"

// Contract: after a failure in one process, all remaining processes report it. Verdict, headline and exit code are
// those of the simulation if possible. Nothing hangs.
namespace rehearse::test {
namespace {

using testing::HasSubstr;

// The timeout is long enough for a busy machine, and short enough for a test.
const std::vector<std::string> kCheckTimeout{"REHEARSE_CHECK_TIMEOUT=4"};

void expect_verdict(const RankRun& run, Verdict verdict) {
  ASSERT_TRUE(run.report.has_value()) << run.output;
  EXPECT_EQ(to_string(run.report->verdict), to_string(verdict)) << run.report->headline;
  EXPECT_EQ(run.exit_code, exit_code(verdict));
}

class Mismatches : public testing::TestWithParam<const char*> {};

TEST_P(Mismatches, OfOneRank_IsReportedByAllAsInSimulation) {
  const auto real = run_processes({GetParam()}, 3, {"REHEARSE_CHECK_TIMEOUT=60"});
  const auto simulated = simulate({GetParam()}, 3);
  ASSERT_EQ(simulated[0].report->verdict, Verdict::mismatch) << simulated[0].report->headline;
  for (const auto& run : real) {
    expect_verdict(run, Verdict::mismatch);
    if (!run.report) continue;
    EXPECT_EQ(run.report->headline, simulated[0].report->headline);
    ASSERT_EQ(run.report->differences.size(), 1U);
    EXPECT_EQ(run.report->differences[0].fields.size(), simulated[0].report->differences[0].fields.size());
  }
}

INSTANTIATE_TEST_SUITE_P(All, Mismatches,
                         testing::Values("shape", "dtype", "reduce_op", "root", "order", "labels", "labels_of_a_thread",
                                         "new_group"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Faults, MessageOfTheWrongLength_IsAMismatch) {
  for (const auto& run : run_processes({"message_length"}, 2, {"REHEARSE_CHECK_TIMEOUT=60"})) {
    expect_verdict(run, Verdict::mismatch);
    if (run.report) {
      EXPECT_THAT(run.report->headline, HasSubstr("elements"));
    }
  }
}

// Gloo accepts a message that is shorter than its receive. Simulation and processes give the same result, and both make
// a remark.
TEST(Faults, ShorterMessage_FillsTheFirstElements) {
  const auto simulated = simulate({"shorter_message"}, 2);
  expect_verdict(simulated[0], Verdict::ok);
  auto runs = run_processes({"shorter_message"}, 2, {"REHEARSE_CHECK_TIMEOUT=60"});
  runs.push_back(simulated[0]);
  for (const auto& run : runs) {
    expect_verdict(run, Verdict::ok);
    if (!run.report) continue;
    ASSERT_EQ(run.report->remarks.size(), 1U);
    EXPECT_THAT(run.report->remarks[0], HasSubstr("recv #1 from rank 0 on group \"world\" of rank 1"));
    EXPECT_THAT(run.report->remarks[0],
                HasSubstr(" got 2 of 3 elements (2 times in all): the other elements keep their old values"));
  }
}

TEST(Faults, RankThatLeavesACallOut_IsTheDeadlockOfTheSimulation) {
  const auto simulated = simulate({"missing"}, 3);
  ASSERT_EQ(simulated[0].report->verdict, Verdict::deadlock);
  for (const auto& run : run_processes({"missing"}, 3, kCheckTimeout)) {
    expect_verdict(run, Verdict::deadlock);
    if (run.report) {
      EXPECT_EQ(run.report->headline, simulated[0].report->headline);
    }
  }
}

TEST(Faults, RanksThatWaitForEachOther_AreTheDeadlockOfTheSimulation) {
  const auto simulated = simulate({"ring"}, 3);
  ASSERT_EQ(simulated[0].report->verdict, Verdict::deadlock);
  for (const auto& run : run_processes({"ring"}, 3, kCheckTimeout)) {
    expect_verdict(run, Verdict::deadlock);
    if (!run.report) continue;
    EXPECT_EQ(run.report->wait_cycle.size(), simulated[0].report->wait_cycle.size());
  }
}

TEST(Faults, ExceptionOfOneRank_IsReportedByAll) {
  for (const auto* const checks : {"REHEARSE_CHECKS=1", "REHEARSE_CHECKS=0"}) {
    for (const auto& run : run_processes({"exception"}, 3, {checks, "REHEARSE_CHECK_TIMEOUT=60"})) {
      expect_verdict(run, Verdict::rank_failed);
      if (run.report) {
        EXPECT_EQ(run.report->headline, "rank 2: no more data");
      }
    }
  }
}

// If calls are not compared, the receive waits in gloo: for half an hour, unless something ends it.
TEST(Faults, ReceiveFromARankThatHasFailed_EndsWithTheWorld) {
  for (const auto* const checks : {"REHEARSE_CHECKS=1", "REHEARSE_CHECKS=0"}) {
    for (const auto& run : run_processes({"receive_from_failed"}, 3, {checks, "REHEARSE_CHECK_TIMEOUT=60"})) {
      expect_verdict(run, Verdict::rank_failed);
      if (run.report) {
        EXPECT_EQ(run.report->headline, "rank 2: nothing to send");
      }
    }
  }
}

TEST(Faults, ExceptionWithoutAText_IsReportedByItsType_AsInSimulation) {
  const auto simulated = simulate({"exception_without_text"}, 2);
  EXPECT_EQ(simulated[0].report->headline, "rank 1: an exception of type int: 42");
  for (const auto& run : run_processes({"exception_without_text"}, 2, {"REHEARSE_CHECK_TIMEOUT=60"})) {
    expect_verdict(run, Verdict::rank_failed);
    ASSERT_TRUE(run.report.has_value()) << run.output;
    EXPECT_EQ(run.report->headline, simulated[0].report->headline);
  }
}

TEST(Faults, FailedCheck_IsReportedByAll) {
  for (const auto& run : run_processes({"check"}, 2, {"REHEARSE_CHECK_TIMEOUT=60"})) {
    expect_verdict(run, Verdict::check_failed);
    if (run.report) {
      EXPECT_EQ(run.report->headline, "rank 1: check \"the loss falls\" did not hold: it is 3");
    }
  }
}

TEST(Faults, KilledProcess_IsNamedByAllThatAreLeft) {
  for (const auto* const checks : {"REHEARSE_CHECKS=1", "REHEARSE_CHECKS=0"}) {
    const auto runs = run_processes({"killed"}, 3, {checks, "REHEARSE_CHECK_TIMEOUT=4"});
    EXPECT_EQ(runs[2].exit_code, -SIGKILL);
    for (int rank = 0; rank < 2; ++rank) {
      const auto& run = runs[static_cast<std::size_t>(rank)];
      expect_verdict(run, Verdict::crashed);
      if (run.report) {
        EXPECT_THAT(run.report->headline, HasSubstr("rank 2: its process is gone"));
      }
    }
  }
}

// A rank that still writes to the process that is gone must not end by SIGPIPE: it must report the failure.
TEST(Faults, KilledProcessToWhichOthersAreSending_IsNamedByAllThatAreLeft) {
  for (const auto* const checks : {"REHEARSE_CHECKS=1", "REHEARSE_CHECKS=0"}) {
    const auto runs = run_processes({"killed_while_others_send"}, 3, {checks, "REHEARSE_CHECK_TIMEOUT=4"});
    EXPECT_EQ(runs[2].exit_code, -SIGKILL);
    for (int rank = 0; rank < 2; ++rank) {
      const auto& run = runs[static_cast<std::size_t>(rank)];
      EXPECT_NE(run.exit_code, -SIGPIPE);
      expect_verdict(run, Verdict::crashed);
      if (run.report) {
        EXPECT_THAT(run.report->headline, HasSubstr("rank 2: its process is gone"));
      }
    }
  }
}

TEST(Faults, KilledRank0_WhichServedTheStore_IsNamedByAllThatAreLeft) {
  const auto runs = run_processes({"first_killed"}, 3, kCheckTimeout);
  EXPECT_EQ(runs[0].exit_code, -SIGKILL);
  for (int rank = 1; rank < 3; ++rank) {
    const auto& run = runs[static_cast<std::size_t>(rank)];
    expect_verdict(run, Verdict::crashed);
    if (run.report) {
      EXPECT_THAT(run.report->headline, HasSubstr("rank 0: its process is gone"));
    }
  }
}

// The stopped rank's store accepts connections and messages, but answers none.
TEST(Faults, StoppedRank0_WhichServesTheStore_IsNamedByAllThatAreLeftAndByItself) {
  const auto runs = run_processes({"first_stopped"}, 3, {"REHEARSE_CHECK_TIMEOUT=2"});
  for (const auto& run : runs) expect_verdict(run, Verdict::crashed);
  for (int rank = 1; rank < 3; ++rank) {
    const auto& run = runs[static_cast<std::size_t>(rank)];
    if (!run.report) continue;
    EXPECT_THAT(run.report->headline, HasSubstr("rank 0: its process is gone: no message came from it"));
  }
  if (runs[0].report) {
    EXPECT_THAT(runs[0].report->headline, HasSubstr("rank 0: it did not answer, so rank "));
    EXPECT_THAT(runs[0].report->headline, HasSubstr("gave up on it"));
  }
}

// The stop of two seconds is longer than one and a half check timeouts, after which a silent process counts as lost.
TEST(Faults, JobThatWasStoppedAsAWhole_GoesOn) {
  for (const auto& run : run_processes({"first_stopped"}, 1, {"REHEARSE_CHECK_TIMEOUT=1"}))
    expect_verdict(run, Verdict::ok);
}

TEST(Faults, RankThatComputesOnAfterTheEnd_EndsWithTheVerdictOfTheJob) {
  const auto runs = run_processes({"long_step"}, 2, {"REHEARSE_CHECK_TIMEOUT=2"});
  EXPECT_EQ(runs[0].exit_code, exit_code(Verdict::crashed));
  EXPECT_THAT(runs[0].output, HasSubstr("rank 1: its process is gone: no message came from it for"));
  EXPECT_THAT(runs[0].output, HasSubstr("rank 0 did not return from its body after the job had ended"));
}

TEST(Faults, KilledRank0_WhereALauncherServesTheStore_IsNamedByAllThatAreLeft) {
  const auto runs = run_processes({"first_killed"}, 3, kCheckTimeout, Store::of_launcher);
  EXPECT_EQ(runs[0].exit_code, -SIGKILL);
  for (int rank = 1; rank < 3; ++rank) {
    const auto& run = runs[static_cast<std::size_t>(rank)];
    expect_verdict(run, Verdict::crashed);
    if (run.report) {
      EXPECT_THAT(run.report->headline, HasSubstr("rank 0: its process is gone: no message came from it"));
    }
  }
}

TEST(Faults, MonitoredBarrierThatARankDoesNotCall_NamesIt) {
  for (const auto& run : run_processes({"monitored"}, 3, kCheckTimeout)) {
    ASSERT_TRUE(run.report.has_value()) << run.output;
    EXPECT_EQ(run.report->headline, "monitored_barrier #1 on group \"world\": rank 2 has ended and will never come");
    EXPECT_EQ(run.exit_code, exit_code(Verdict::deadlock));
  }
}

// The texts are those of the simulation, whether or not calls are compared.
TEST(Faults, MonitoredBarrierThatTimedOut_NamesTheMissing_AndTheGroupGoesOn) {
  expect_verdict(simulate({"monitored_and_given_up"}, 3)[0], Verdict::ok);
  for (const auto* const checks : {"REHEARSE_CHECKS=1", "REHEARSE_CHECKS=0"}) {
    for (const auto& run : run_processes({"monitored_and_given_up"}, 3, {checks, "REHEARSE_CHECK_TIMEOUT=60"})) {
      expect_verdict(run, Verdict::ok);
      ASSERT_TRUE(run.report.has_value()) << run.output;
      EXPECT_EQ(run.report->checks.at("what the barrier throws"), 5U);
    }
  }
}

TEST(Faults, UncaughtMonitoredBarrier_IsATimeoutThatNamesTheMissing) {
  for (const auto& run : run_processes({"monitored_and_not_caught"}, 3, {"REHEARSE_CHECK_TIMEOUT=4"})) {
    expect_verdict(run, Verdict::timeout);
    ASSERT_TRUE(run.report.has_value()) << run.output;
    EXPECT_THAT(run.report->headline, HasSubstr("rank 2 was still running"));
    EXPECT_THAT(run.report->headline,
                HasSubstr("rank 0 waited for it in monitored_barrier #1 on group \"world\" until the timeout"));
  }
}

TEST(Faults, LateRankWithinTheTime_IsNoFailure) {
  for (const auto& run : run_processes({"late"}, 3, {"REHEARSE_CHECK_TIMEOUT=60"})) {
    expect_verdict(run, Verdict::ok);
    ASSERT_EQ(run.results.at("late").size(), 1U);
    EXPECT_THAT(run.results.at("late")[0], BitEqual(at::full({2}, 3.0F)));
    EXPECT_EQ(run.output, "");  // no output about waits that end
  }
}

TEST(Faults, RankThatComputesForLongerThanTheCheckTimeout_IsNoFailure) {
  for (const auto& run : run_processes({"long_computation"}, 2, {"REHEARSE_CHECK_TIMEOUT=2"}))
    expect_verdict(run, Verdict::ok);
}

TEST(Faults, RankThatComesTooLate_IsNamedByAll) {
  for (const auto& run : run_processes({"too_late"}, 2, {"REHEARSE_CHECK_TIMEOUT=2"})) {
    expect_verdict(run, Verdict::timeout);
    if (run.report) {
      EXPECT_THAT(run.report->headline, HasSubstr("rank 1 was still running"));
    }
  }
}

TEST(Faults, WhatTheSimulationHonoursOrRefuses_ProcessesDo) {
  for (const auto& run : run_processes({"extended", "shrink_that_aborts", "backend_in_a_capture"}, 2, kCheckTimeout)) {
    expect_verdict(run, Verdict::ok);
    EXPECT_TRUE(run.report.has_value()) << run.output;
  }
}

}  // namespace
}  // namespace rehearse::test
