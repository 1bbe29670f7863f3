// SPDX-License-Identifier: BSD-3-Clause
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/sim/report_writers.h>

#include "cli/merge/merge_folder.h"
#include "cli/process.h"

// Contract: however the process of a rank ends, the report of all says what that was; and who interrupts a run that
// hangs is told for whom the others waited, and where that rank was.
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

  void expect_who_was_missing(const std::string& headline) const {
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
      EXPECT_THAT(line.where, HasSubstr("modes_job.cpp:"));
    }
    EXPECT_THAT(report.rank_lines[2].where, HasSubstr(" in stay_for_ever"));
    EXPECT_THAT(read_file(folder_ / "rehearse-out/stuck/report.txt"), Not(HasSubstr("SIGKILL")));
  }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(RealEnds, CtrlC_SaysWhoWasMissingAndWhere) {
  scenario("stuck", "computes = true\n");
  const auto finished =
      run_and_signal(CLI_MODES_JOB, {"run", "stuck.toml", "--with=gloo"}, folder_, "[2] staying", SIGINT);
  EXPECT_EQ(finished.exit_code, 130) << finished.out << finished.err;
  EXPECT_THAT(finished.err, StartsWith("interrupted: all ranks are asked to end"));
  expect_who_was_missing("from outside: at ");
  EXPECT_EQ(report_of("stuck").rank_lines[2].state, RankOutcome::stopped);
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
  EXPECT_THAT(report.rank_lines[2].where, HasSubstr(" in stay_for_ever"));
  EXPECT_THAT(read_file(folder_ / "rehearse-out/stuck/report.txt"), Not(HasSubstr("SIGKILL")));
}

TEST_F(RealEnds, AProcessThatItsProgramEnds_IsToldAsWhatItIs) {
  const struct {
    const char* by;
    Verdict verdict;
    const char* headline;
  } cases[] = {
      {"exit0", Verdict::rank_failed, "rank 2: exit(0) was called; a rank ends by returning from its body"},
      {"_exit", Verdict::rank_failed, "rank 2: _exit(3) was called; a rank ends by returning from its body"},
      {"syscall", Verdict::crashed,
       "rank 2: its process ended with exit code 3; what it said is in rehearse-out/dies/"},
      {"stop", Verdict::crashed, "rank 2: its process was stopped by SIGSTOP (Stopped (signal)), and so was killed"},
  };
  for (const auto& [by, verdict, headline] : cases) {
    SCOPED_TRACE(by);
    scenario("dies", std::string("by = \"") + by + "\"\n");
    const auto finished =
        run_process(CLI_JOB, {"run", "dies.toml", "--with=gloo", "--quiet"}, folder_, {"REHEARSE_CHECK_TIMEOUT=2"});
    EXPECT_EQ(finished.exit_code, exit_code(verdict)) << finished.out << finished.err;
    EXPECT_THAT(report_of("dies").headline, StartsWith(headline));
    EXPECT_EQ(report_of("dies").verdict, verdict);
    EXPECT_THAT(finished.out, Not(HasSubstr("SIGKILL")));
  }
}

// As the simulation says it.
TEST_F(RealEnds, Exit_IsTheSameInSimulation) {
  scenario("dies", "by = \"exit3\"\n");
  ASSERT_EQ(run_process(CLI_JOB, {"run", "dies.toml", "--quiet"}, folder_).exit_code, 1);
  const auto simulated = report_of("dies");
  ASSERT_EQ(run_process(CLI_JOB, {"run", "dies.toml", "--with=gloo", "--quiet"}, folder_).exit_code, 1);
  EXPECT_EQ(report_of("dies").headline, simulated.headline);
  EXPECT_EQ(report_of("dies").rank_lines[2].where, simulated.rank_lines[2].where);
}

TEST_F(RealEnds, AProcessThatTheCommandKilled_IsNotTheSystems) {
  for (const char* rank : {"rank-0", "rank-1"}) std::filesystem::create_directories(folder_ / rank);
  std::vector<cli::ProcessEnd> ends(2);
  ends[0] = {.ended = true, .code = 0, .signal = SIGKILL, .stopped_by = 0, .killed = true};
  ends[1] = {.ended = true, .code = 0, .signal = SIGKILL, .stopped_by = SIGTSTP, .killed = true};
  auto report = cli::merged_report_of(folder_, 2, ends);
  EXPECT_EQ(report.rank_lines[0].doing, "left no report: its process did not end when it was asked to, and was killed");
  EXPECT_THAT(report.rank_lines[1].doing, HasSubstr("was stopped by SIGTSTP (Stopped), and so was killed in the end"));
  ends[0].killed = false;
  report = cli::merged_report_of(folder_, 2, ends);
  EXPECT_EQ(report.rank_lines[0].doing, "left no report: its process was ended by SIGKILL (Killed)");
}

}  // namespace
}  // namespace rehearse::test
