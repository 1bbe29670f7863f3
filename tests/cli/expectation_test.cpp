// SPDX-License-Identifier: BSD-3-Clause
#include "cli/expectation.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/process.h"

// Contract: `run` and `sweep` decide by one rule whether a run meets its scenario's expected verdict. The rule does not
// depend on whether the process of the run survives. Only SIGKILL of the command itself is a failure in any case.
namespace rehearse::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Expectation : public ::testing::Test {
 protected:
  void scenario(const std::string& program, const std::string& expect, const std::string& parameters) const {
    write_file(folder_ / (program + ".toml"), "program = \"" + program + "\"\nexpect = \"" + expect +
                                                  "\"\n[world]\nranks = 4\n[parameters]\n" + parameters);
  }

  // A sanitizer that handles faults would end the process before our handler reports.
  Finished job(const std::vector<std::string>& arguments) const {
    return run_process(CLI_JOB, arguments, folder_, {"ASAN_OPTIONS=handle_segv=0"});
  }

  const std::filesystem::path folder_ = fresh_folder();
};

sim::Scenario expecting(Verdict verdict) {
  sim::Scenario scenario;
  scenario.expect = verdict;
  return scenario;
}

Report of(Verdict verdict) {
  Report report;
  report.verdict = verdict;
  return report;
}

TEST(ExitCode, OfAVerdict_IsItsOwnUnlessItIsExpected) {
  EXPECT_EQ(cli::exit_code_of(expecting(Verdict::ok), of(Verdict::ok)), 0);
  EXPECT_EQ(cli::exit_code_of(expecting(Verdict::ok), of(Verdict::crashed)), 9);
  EXPECT_EQ(cli::exit_code_of(expecting(Verdict::crashed), of(Verdict::crashed)), 0);
  EXPECT_EQ(cli::exit_code_of(expecting(Verdict::interrupted), of(Verdict::interrupted)), 0);
  EXPECT_EQ(cli::exit_code_of(expecting(Verdict::crashed), of(Verdict::deadlock)), 3);
  EXPECT_EQ(cli::exit_code_of(expecting(Verdict::crashed), of(Verdict::ok)), 7);
}

TEST(ExitCode, WhereAFaultDidNotFire_Is7) {
  auto report = of(Verdict::deadlock);
  report.faults.emplace_back().why_not = "no call fitted";
  EXPECT_EQ(cli::exit_code_of(expecting(Verdict::deadlock), report), 7);
  report.faults.front().optional = true;
  EXPECT_EQ(cli::exit_code_of(expecting(Verdict::deadlock), report), 0);
}

TEST_F(Expectation, OfACrash_HoldsInRunAndSweep) {
  for (const std::string by : {"abort", "fault", "alarm"}) {
    SCOPED_TRACE(by);
    scenario("dies", "CRASHED", "by = \"" + by + "\"\n");
    const auto run = job({"run", "dies.toml", "--quiet"});
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_THAT(run.out, StartsWith("CRASHED: rank 2 ended the process by SIG"));
    EXPECT_THAT(run.err, testing::Not(HasSubstr("expected")));
    EXPECT_EQ(job({"sweep", "dies.toml", "--seeds=1..2", "--quiet"}).exit_code, 0);
  }
}

#ifdef CLI_HAS_REAL
TEST_F(Expectation, OfACrash_HoldsInARealRun) {
  scenario("dies", "CRASHED", "by = \"abort\"\n");
  EXPECT_EQ(job({"run", "dies.toml", "--with=gloo", "--quiet"}).exit_code, 0);
}
#endif

TEST_F(Expectation, OfAnotherVerdictThanACrash_IsReportedOnStderr) {
  scenario("dies", "DEADLOCK", "by = \"abort\"\n");
  const auto run = job({"run", "dies.toml", "--quiet"});
  EXPECT_EQ(run.exit_code, 9);
  EXPECT_EQ(run.err, "expected DEADLOCK: the run ended as CRASHED\n");
}

// The command's own process dies by the signal, which its caller sees. No other process can change that exit status.
TEST_F(Expectation, OfARunThatIsKilled_CannotHold) {
  scenario("dies", "CRASHED", "by = \"kill\"\n");
  EXPECT_EQ(job({"run", "dies.toml", "--quiet"}).exit_code, -SIGKILL);
  EXPECT_EQ(job({"sweep", "dies.toml", "--seeds=1..2", "--quiet"}).exit_code, 0);
}

TEST_F(Expectation, OfAnInterruption_HoldsWhereTheProcessHadToBeEnded) {
  scenario("forever", "INTERRUPTED", "compute = true\n");
  // A busy machine may need more than a second to start the rank that computes.
  const auto overdue = job({"run", "forever.toml", "--time-limit=4", "--quiet"});
  EXPECT_EQ(overdue.exit_code, 0);
  EXPECT_THAT(overdue.out, HasSubstr("INTERRUPTED: did not end within 4 s (--time-limit) and had to be killed: "));
  EXPECT_EQ(run_and_signal(CLI_JOB, {"run", "forever.toml"}, folder_, "computing", SIGINT, 2).exit_code, 0);
}

TEST_F(Expectation, OfAnInterruption_HoldsAtASwitch) {
  scenario("forever", "INTERRUPTED", "");
  EXPECT_EQ(job({"run", "forever.toml", "--time-limit=1", "--quiet"}).exit_code, 0);
}

}  // namespace
}  // namespace rehearse::test
