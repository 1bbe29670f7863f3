// SPDX-License-Identifier: BSD-3-Clause
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/sim/report_writers.h>

#include "cli/process.h"

// Contract: however the process of a rank ends, the job's report says how. After Ctrl-C in a run that hangs, the report
// names the rank for which the others waited, and where that rank was.
namespace rehearse::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class RealEnds : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef CLI_HAS_REAL
    GTEST_SKIP() << "built without the real mode (REHEARSE_REAL=OFF)";
#endif
  }

  void scenario(const std::string& program, const std::string& parameters) const {
    write_file(folder_ / (program + ".toml"),
               "program = \"" + program + "\"\n[world]\nranks = 3\n[parameters]\n" + parameters);
  }

  Report report_of(const std::string& program) const {
    return sim::report_from_json(read_file(folder_ / "rehearse-out" / program / "report.json"));
  }

  // `came_back`: the waiting ranks have returned from their bodies, so the report no longer knows where they waited.
  void expect_who_was_missing(const std::string& headline, bool came_back = false) const {
    const auto report = report_of("stuck");
    EXPECT_EQ(report.verdict, Verdict::interrupted);
    EXPECT_THAT(report.headline, StartsWith(headline));
    EXPECT_THAT(report.headline, HasSubstr("; rank 2 was at modes_job.cpp:"));
    EXPECT_THAT(report.headline,
                HasSubstr(" in stay_for_ever; ranks 0-1 waited for it in barrier #1 on group \"world\""));
    ASSERT_EQ(report.rank_lines.size(), 3u);
    for (const int rank : {0, 1}) {
      const auto& line = report.rank_lines[static_cast<std::size_t>(rank)];
      EXPECT_EQ(line.waits_for, std::vector<int>{2});
      EXPECT_THAT(line.where.text, came_back ? HasSubstr("") : HasSubstr("modes_job.cpp:"));
    }
    EXPECT_THAT(report.rank_lines[2].where.text, HasSubstr(" in stay_for_ever"));
    EXPECT_THAT(read_file(folder_ / "rehearse-out/stuck/report.txt"), Not(HasSubstr("SIGKILL")));
  }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(RealEnds, CtrlC_NamesTheMissingRanksAndTheirCalls) {
  scenario("stuck", "computes = true\n");
  const auto finished =
      run_and_signal(CLI_MODES_JOB, {"run", "stuck.toml", "--with=gloo"}, folder_, "[2] staying", SIGINT);
  EXPECT_EQ(finished.exit_code, 130) << finished.out << finished.err;
  EXPECT_THAT(finished.err, StartsWith("interrupted: all ranks are asked to end"));
  expect_who_was_missing("from outside: at ");
  EXPECT_EQ(report_of("stuck").rank_lines[2].state, RankOutcome::stopped);
  // The calls ended with the job; none of them failed.
  const auto trace = read_file(folder_ / "rehearse-out/stuck/trace.json");
  EXPECT_THAT(trace, HasSubstr("\"name\":\"barrier\""));
  EXPECT_THAT(trace, Not(HasSubstr("\"failed\":")));
}

TEST_F(RealEnds, Sigterm_OfARankThatIsInTheKernel_SaysInWhichCall) {
  scenario("stuck", "computes = false\n");
  const auto finished =
      run_and_signal(CLI_MODES_JOB, {"run", "stuck.toml", "--with=gloo"}, folder_, "[2] staying", SIGTERM);
  EXPECT_EQ(finished.exit_code, 130) << finished.out << finished.err;
  expect_who_was_missing("from outside: at ");
  EXPECT_EQ(report_of("stuck").rank_lines[2].state, RankOutcome::blocked);
  EXPECT_THAT(report_of("stuck").rank_lines[2].doing, StartsWith("pause()"));
}

TEST_F(RealEnds, TimeLimit_SaysTheSame) {
  scenario("stuck", "computes = true\n");
  const auto finished = run_process(CLI_MODES_JOB, {"run", "stuck.toml", "--with=gloo", "--time-limit=10"}, folder_);
  EXPECT_EQ(finished.exit_code, 130) << finished.out << finished.err;
  expect_who_was_missing("did not end within 10 s (--time-limit): at ");
}

TEST_F(RealEnds, ASecondCtrlC_SaysWhereTheRankIsThatComputes) {
  scenario("stuck", "computes = true\n");
  const auto finished =
      run_and_signal(CLI_MODES_JOB, {"run", "stuck.toml", "--with=gloo"}, folder_, "[2] staying", SIGINT, 2);
  EXPECT_EQ(finished.exit_code, 130) << finished.out << finished.err;
  const auto report = report_of("stuck");
  EXPECT_EQ(report.verdict, Verdict::interrupted);
  ASSERT_EQ(report.rank_lines.size(), 3u);
  EXPECT_THAT(report.rank_lines[2].where.text, HasSubstr(" in stay_for_ever"));
  EXPECT_THAT(read_file(folder_ / "rehearse-out/stuck/report.txt"), Not(HasSubstr("SIGKILL")));
}

TEST_F(RealEnds, ASecondCtrlC_NamesTheRankForWhichOthersWait) {
  scenario("stuck", "computes = false\n");
  const auto finished =
      run_and_signal(CLI_MODES_JOB, {"run", "stuck.toml", "--with=gloo"}, folder_, "[2] staying", SIGINT, 2);
  EXPECT_EQ(finished.exit_code, 130) << finished.out << finished.err;
  expect_who_was_missing("from outside: rank 2 is blocked in a system call: ended by a second SIGINT (Interrupt)",
                         true);
  for (const int rank : {0, 1}) {
    const auto line = report_of("stuck").rank_lines[static_cast<std::size_t>(rank)];
    EXPECT_EQ(line.state, RankOutcome::blocked);
    EXPECT_EQ(line.doing, "barrier #1 on group \"world\" (2 of 3 ranks have called it)");
  }
}

TEST_F(RealEnds, ASecondCtrlC_WhereNoRankIsInACall_SaysWhereEachIs) {
  scenario("all_stay", "");
  const auto finished =
      run_and_signal(CLI_MODES_JOB, {"run", "all_stay.toml", "--with=gloo"}, folder_, "[2] staying", SIGINT, 2);
  EXPECT_EQ(finished.exit_code, 130) << finished.out << finished.err;
  const auto report = report_of("all_stay");
  EXPECT_EQ(report.headline,
            "from outside: rank 0 is blocked in a system call: ended by a second SIGINT (Interrupt); and 2 more");
  ASSERT_EQ(report.rank_lines.size(), 3u);
  for (const auto& line : report.rank_lines) {
    SCOPED_TRACE(line.rank);
    EXPECT_EQ(line.state, line.rank == 1 ? RankOutcome::stopped : RankOutcome::blocked);
    EXPECT_THAT(line.where.text, HasSubstr(" in stay_for_ever"));
    EXPECT_GT(line.at, kTimeZero);
  }
  EXPECT_EQ(report.operations, 0u);
}

TEST_F(RealEnds, CtrlC_WhereNoRankIsInACall_SaysWhereEachIs) {
  scenario("all_stay", "");
  const auto finished =
      run_and_signal(CLI_MODES_JOB, {"run", "all_stay.toml", "--with=gloo"}, folder_, "[2] staying", SIGINT);
  EXPECT_EQ(finished.exit_code, 130) << finished.out << finished.err;
  const auto report = report_of("all_stay");
  EXPECT_EQ(report.headline, "from outside: the run was interrupted");
  for (const auto& line : report.rank_lines) EXPECT_THAT(line.where.text, HasSubstr(" in stay_for_ever"));
}

TEST_F(RealEnds, ARankThatWaitsForAKey_IsReportedWithTheKey) {
  scenario("asks", "");
  const auto finished =
      run_and_signal(CLI_MODES_JOB, {"run", "asks.toml", "--with=gloo"}, folder_, "[2] asking", SIGINT);
  EXPECT_EQ(finished.exit_code, 130) << finished.out << finished.err;
  const auto report = report_of("asks");
  ASSERT_EQ(report.rank_lines.size(), 3u);
  const auto& line = report.rank_lines[2];
  EXPECT_EQ(line.state, RankOutcome::blocked);
  EXPECT_EQ(line.doing, "store wait for key \"never\", and did not return from its body after the job had ended");
  EXPECT_THAT(line.where.text, HasSubstr("modes_job.cpp:"));
  EXPECT_EQ(line.last, "barrier #1 on group \"world\"");
}

TEST_F(RealEnds, AProcessThatItsProgramEnds_IsReportedAsSuch) {
  const struct {
    const char* by;
    Verdict verdict;
    const char* headline;
  } cases[] = {
      {"exit0", Verdict::rank_failed, "rank 2: exit(0) was called; a rank ends by returning from its body"},
      {"_exit", Verdict::rank_failed, "rank 2: _exit(3) was called; a rank ends by returning from its body"},
      {"syscall", Verdict::crashed,
       "rank 2: its process ended with exit code 3; what it said is in rehearse-out/dies/"},
      {"terminate", Verdict::rank_failed, "rank 2: std::terminate() was called; it may be that a std::thread was "},
      {"thread", Verdict::rank_failed, "rank 2: the disk is full"},
      {"abort", Verdict::crashed, "rank 2 ended the process by SIGABRT (Aborted)"},
      {"kill", Verdict::crashed, "rank 2: the process ended without a word, as SIGKILL ends one"},
      {"stop", Verdict::crashed, "rank 2: its process was stopped by SIGSTOP (Stopped (signal)), and so was killed"},
  };
  for (const auto& [by, verdict, headline] : cases) {
    SCOPED_TRACE(by);
    scenario("dies", std::string("by = \"") + by + "\"\n");
    const auto finished =
        run_process(CLI_JOB, {"run", "dies.toml", "--with=gloo", "--quiet"}, folder_, {"REHEARSE_CHECK_TIMEOUT=4"});
    EXPECT_EQ(finished.exit_code, exit_code(verdict)) << finished.out << finished.err;
    const auto report = report_of("dies");
    EXPECT_THAT(report.headline, StartsWith(headline));
    EXPECT_EQ(report.verdict, verdict);
    EXPECT_EQ(finished.out.find("SIGKILL") != std::string::npos, by == std::string("kill"));
    ASSERT_EQ(report.rank_lines.size(), 3u);
    EXPECT_EQ(report.rank_lines[2].last, "allreduce #1 on group \"world\"");
    EXPECT_GT(report.rank_lines[2].at, kTimeZero);
    const auto own = read_file(folder_ / "rehearse-out/dies/rank-2/report.json");
    EXPECT_EQ(sim::report_from_json(own).operations, 1u);
  }
}

TEST_F(RealEnds, ExitAndTerminate_AreTheSameInSimulation) {
  for (const std::string by : {"exit3", "terminate", "thread"}) {
    SCOPED_TRACE(by);
    scenario("dies", "by = \"" + by + "\"\n");
    ASSERT_EQ(run_process(CLI_JOB, {"run", "dies.toml", "--quiet"}, folder_).exit_code, 1);
    const auto simulated = report_of("dies");
    ASSERT_EQ(run_process(CLI_JOB, {"run", "dies.toml", "--with=gloo", "--quiet"}, folder_).exit_code, 1);
    EXPECT_EQ(report_of("dies").headline, simulated.headline);
    EXPECT_EQ(report_of("dies").rank_lines[2].where.text, simulated.rank_lines[2].where.text);
  }
}

// Without GPUs, nothing of this run can be kept.
TEST_F(RealEnds, RunThatCannotBegin_LeavesTheFilesOfTheLastOne) {
  scenario("dies", "by = \"abort\"\n");
  ASSERT_NE(run_process(CLI_JOB, {"run", "dies.toml", "--quiet"}, folder_).exit_code, 0);
  const auto log = read_file(folder_ / "rehearse-out/dies/run.rlog");
  for (const char* with : {"--with=nccl", "--with=processes"}) {
    EXPECT_EQ(run_process(CLI_JOB, {"run", "dies.toml", with, "--quiet"}, folder_).exit_code, 69) << with;
    EXPECT_EQ(read_file(folder_ / "rehearse-out/dies/run.rlog"), log) << with;
  }
}

// The end of the world throws through a noexcept function of the waiting ranks, so the run-time library calls
// std::terminate(). That must not count as a failure of these ranks.
TEST_F(RealEnds, TheEndOfTheWorldInANoexceptFunction_IsNoFailure) {
  scenario("waits_in_noexcept", "");
  const auto finished = run_process(CLI_MODES_JOB, {"run", "waits_in_noexcept.toml", "--with=gloo", "--quiet"}, folder_,
                                    {"REHEARSE_CHECK_TIMEOUT=4"});
  EXPECT_EQ(finished.exit_code, 1) << finished.out << finished.err;
  EXPECT_EQ(report_of("waits_in_noexcept").headline, "rank 1: the dataset is empty");
}

}  // namespace
}  // namespace rehearse::test
