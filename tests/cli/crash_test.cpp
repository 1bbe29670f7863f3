// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/run_log.h>

#include "cli/process.h"

// Contract: if a rank ends the process, there is still a report. It says how to repeat the run and, except after
// SIGKILL, which rank ended the process, how, where and when.
namespace rehearse::test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class Crash : public ::testing::Test {
 protected:
  void scenario(const std::string& by, const std::string& more = "") const {
    write_file(folder_ / "dies.toml",
               "program = \"dies\"\n[world]\nranks = 4\n[parameters]\nby = \"" + by + "\"\n" + more);
  }

  // A sanitizer that handles faults would end the process before our handler reports.
  Finished job(const std::vector<std::string>& arguments) const {
    return run_process(CLI_JOB, arguments, folder_, {"ASAN_OPTIONS=handle_segv=0"});
  }

  const std::filesystem::path folder_ = fresh_folder();
};

constexpr const char* kLog = "rehearse-out/dies/run.rlog";

TEST_F(Crash, EachWayToDie_IsReported) {
  const struct {
    const char* by;
    const char* headline;
    const char* how;
    const char* where;
  } cases[] = {
      {"abort", "ended the process by SIGABRT (Aborted)", "SIGABRT (Aborted)", "end_process"},
      {"alarm", "ended the process by SIGALRM (Alarm clock)", "SIGALRM (Alarm clock)", "end_process"},
      {"fault", "ended the process by SIGSEGV (Segmentation fault)", "SIGSEGV (Segmentation fault)", "end_process"},
      {"recursion",
       "overflowed its stack of 8192 KiB, and ended the process by SIGSEGV (Segmentation fault); raise `stack`\n  "
       "under "
       "[world]",
       "SIGSEGV (Segmentation fault)", "recurse"},
  };
  const auto above_banner = [](const std::string& text) { return text.substr(0, text.find("\nrehearse ")); };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.by);
    scenario(one.by);
    const auto finished = job({"run", "dies.toml", "--quiet"});
    EXPECT_EQ(finished.exit_code, 9);
    EXPECT_THAT(finished.out,
                StartsWith(std::string("CRASHED: rank 2 ") + one.headline + "\nrank 2: failed at job.cpp:"));
    EXPECT_THAT(finished.out,
                HasSubstr(std::string(" in ") + one.where + ": " + one.how + "; t=30 us (virtual time)\n"));
    EXPECT_THAT(finished.out, EndsWith("\nrehearse 0.1.0 program=dies ranks=4 seed=1 schedule=random\n"
                                       "files: rehearse-out/dies/run.rlog, rehearse-out/dies/report.txt, "
                                       "rehearse-out/dies/report.json,\n  rehearse-out/dies/report.html\n"
                                       "replay: job replay rehearse-out/dies/run.rlog\n"));
    EXPECT_EQ(read_file(folder_ / "rehearse-out/dies/report.txt"), finished.out);
    EXPECT_FALSE(sim::read_run_log(folder_ / kLog).finished);
    const auto again = job({"replay", kLog});
    EXPECT_EQ(again.exit_code, 9);
    EXPECT_THAT(again.out, HasSubstr(above_banner(finished.out)));
  }
}

// A mistake of Rehearse itself is nobody's in the program.
TEST_F(Crash, FailedCheckOfRehearse_IsAnInternalErrorWithoutACulprit) {
  scenario("check");
  const auto finished = job({"run", "dies.toml", "--quiet", "--json"});
  EXPECT_EQ(finished.exit_code, 70);
  const auto report = sim::report_from_json(finished.out);
  EXPECT_EQ(report.verdict, Verdict::crashed);
  EXPECT_THAT(report.headline,
              MatchesRegex("rehearse: internal error at .*job.cpp:[0-9]+: not depth == 1 .*, on rank 2 "
                           "at [0-9]+ ns of virtual time; this is a bug in Rehearse"));
  EXPECT_THAT(finished.out, HasSubstr("\"culprits\": []"));
  EXPECT_EQ(job({"replay", kLog, "--quiet"}).exit_code, 70);
  EXPECT_THAT(job({"sweep", "dies.toml", "--seeds=1..2", "--keep-going", "--quiet"}).out,
              StartsWith("FAILED: 2 of 2 seeds, 1 bug\n1. CRASHED, seeds 1, 2: rehearse: internal error at"));
}

TEST_F(Crash, StackOverflow_SaysWhatToRaise) {
  scenario("recursion");
  EXPECT_THAT(job({"run", "dies.toml"}).err, HasSubstr("stack overflow on rank 2: its fiber's stack has 8192 KiB"));
}

// No process can handle SIGKILL. A second process watches the run, and writes a report of what it knows. The log was
// written before the run.
TEST_F(Crash, Kill_LeavesReportAndLog) {
  scenario("kill");
  // The watching process holds the pipe open until it has written everything, so `cat` does not end earlier.
  const auto finished = run_process("/bin/sh", {"-c", "'" CLI_JOB "' run dies.toml --quiet | cat"}, folder_);
  EXPECT_THAT(finished.out,
              StartsWith("CRASHED: the process ended without a word, as SIGKILL ends one (the system sends "
                         "it when memory is short, as do `kill\n  -9` and job managers), in the middle of the run\n"));
  EXPECT_EQ(read_file(folder_ / "rehearse-out/dies/report.txt"), finished.out);
  const auto report = sim::report_from_json(read_file(folder_ / "rehearse-out/dies/report.json"));
  EXPECT_EQ(report.verdict, Verdict::crashed);
  EXPECT_FALSE(sim::read_run_log(folder_ / kLog).finished);
}

TEST_F(Crash, ForkedProcessThatGoesOn_IsEndedAndNamed) {
  scenario("fork");
  const auto finished = job({"run", "dies.toml", "--quiet"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.out, StartsWith("OK: 4 ranks returned"));
  EXPECT_EQ(finished.err,
            "rehearse: a process that rank 2 forked went on in the rank's body, which is not its own: it may "
            "call exec or _exit, and nothing that waits\n");
}

TEST_F(Crash, AsJson_HasStdoutForItself) {
  scenario("abort");
  const auto finished = job({"run", "dies.toml", "--json"});
  EXPECT_EQ(finished.exit_code, 9);
  const auto report = sim::report_from_json(finished.out);
  EXPECT_EQ(report.verdict, Verdict::crashed);
  ASSERT_EQ(report.rank_lines.size(), 1u);
  EXPECT_EQ(report.rank_lines[0].rank, 2);
  EXPECT_THAT(report.rank_lines[0].where.text, MatchesRegex("job.cpp:[0-9]+ in end_process"));
  EXPECT_EQ(job({"explain", "rehearse-out/dies/report.json", "--json"}).out, finished.out);
}

// The rank closes all files except the standard ones, and thus the command's own files.
TEST_F(Crash, RankThatClosesFilesOfOthers_ChangesNothing) {
  const struct {
    const char* by;
    Verdict verdict;
  } cases[] = {{"nothing", Verdict::ok}, {"abort", Verdict::crashed}};
  for (const auto& [by, verdict] : cases) {
    SCOPED_TRACE(by);
    scenario(by, "closes = true\n");
    const auto run = job({"run", "dies.toml", "--json"});
    EXPECT_EQ(run.exit_code, exit_code(verdict));
    EXPECT_EQ(sim::report_from_json(run.out).verdict, verdict);
    EXPECT_EQ(run.out, read_file(folder_ / "rehearse-out/dies/report.json"));
    EXPECT_EQ(job({"replay", kLog, "--quiet"}).exit_code, exit_code(verdict));
    const auto sweep = job({"sweep", "dies.toml", "--seeds=1..2", "--keep-going", "--quiet"});
    EXPECT_EQ(sweep.exit_code, exit_code(verdict));
    EXPECT_THAT(sweep.out,
                StartsWith(verdict == Verdict::ok ? "OK: 2 seeds" : "FAILED: 2 of 2 seeds, 1 bug\n1. CRASHED"));
  }
}

TEST_F(Crash, RunThatEndsWell_IsNotDisturbed) {
  scenario("nothing");
  const auto finished = job({"run", "dies.toml", "--quiet"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, "");
  EXPECT_THAT(finished.out, StartsWith("OK: 4 ranks returned"));
}

// Only the faults that have fired, and only in the run that died.
TEST_F(Crash, FaultsThatFired_AreInTheReport) {
  scenario("fault",
           "[[fault]]\ndo = \"pause\"\nrank = 0\nat = \"allreduce#1\"\nfor = \"5ms\"\n"
           "[[fault]]\ndo = \"pause\"\nrank = 1\nat = \"allreduce#2\"\nfor = \"5ms\"\n");
  const std::string line = "\nfault: pause rank=0 at=allreduce#1 for=5ms: fired on rank 0 in allreduce #1 on";
  const auto finished = job({"run", "dies.toml", "--quiet"});
  EXPECT_EQ(finished.exit_code, 9);
  EXPECT_THAT(finished.out, HasSubstr(line));
  EXPECT_THAT(finished.out, Not(HasSubstr("rank=1")));
  const auto report = sim::report_from_json(read_file(folder_ / "rehearse-out/dies/report.json"));
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_EQ(report.faults[0].times, 1u);
  ASSERT_EQ(report.faults[0].fired.size(), 1u);
  EXPECT_EQ(report.faults[0].fired[0].rank, 0);
  EXPECT_EQ(report.faults[0].fired[0].call, "allreduce #1 on group \"world\"");
  const auto swept = job({"sweep", "dies.toml", "--seeds=1..2", "--keep-going", "--quiet"});
  EXPECT_EQ(swept.exit_code, 9);
  for (const char* seed : {"seed-1", "seed-2"}) {
    const auto text = read_file(folder_ / "rehearse-out/dies" / seed / "report.txt");
    EXPECT_THAT(text, HasSubstr(line));
  }
  scenario("fault");
  EXPECT_THAT(job({"run", "dies.toml", "--quiet"}).out, Not(HasSubstr("fault: pause")));
}

TEST_F(Crash, InASweep_IsTheSame) {
  scenario("abort");
  const auto finished = job({"sweep", "dies.toml", "--seeds=1..2", "--keep-going", "--quiet"});
  EXPECT_EQ(finished.exit_code, 9);
  EXPECT_THAT(finished.out, StartsWith("FAILED: 2 of 2 seeds, 1 bug\n"
                                       "1. CRASHED, seeds 1, 2: rank 2 ended the process by SIGABRT (Aborted)\n"
                                       "     SIGABRT (Aborted)  at job.cpp:"));
}

}  // namespace
}  // namespace rehearse::test
