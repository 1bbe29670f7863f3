// SPDX-License-Identifier: BSD-3-Clause
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/run_log.h>
#include <unistd.h>

#include "cli/process.h"

// Contract: after Ctrl-C, the command still leaves report, log and trace. If a rank never switches, a second Ctrl-C
// ends the process. A sweep that is interrupted or killed leaves no worker behind. If the disk is full, the files are
// lost, but not the report. If the reader of the output goes away, no file is lost.
namespace rehearse::test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kNote =
    "interrupted: the run ends at the next call of a rank that can be ended, and its report follows; if a rank "
    "computes without end, a second Ctrl-C ends the process at once\n";

class Interrupt : public ::testing::Test {
 protected:
  void scenario(const std::string& program, const std::string& more = "") const {
    write_file(folder_ / (program + ".toml"), "program = \"" + program + "\"\n[world]\nranks = 4\n" + more);
  }

  Finished interrupted(const std::vector<std::string>& arguments, const std::string& ready, int signal,
                       int times = 1) const {
    return run_and_signal(CLI_JOB, arguments, folder_, ready, signal, times);
  }

  Finished shell(const std::string& line) const { return run_process("/bin/sh", {"-c", line}, folder_); }

  // Runs the command in a shell in which no file may become longer than zero bytes.
  Finished with_a_full_disk(const std::string& command) const {
    return shell("{ { (ulimit -f 0; trap '' XFSZ; '" CLI_JOB "' " + command +
                 "; echo \"exit code $?\" >&2) 2>&1 >&4 | cat >&2; } 4>&1 | cat; }");
  }

  // Counts the processes that still work in this test's folder: the test started them, and they have not ended.
  int left_behind() const {
    int count = 0;
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
      std::error_code gone;
      const auto works_in = std::filesystem::read_symlink(process.path() / "cwd", gone);
      if (!gone && works_in == std::filesystem::canonical(folder_)) ++count;
    }
    return count;
  }

  const std::filesystem::path folder_ = fresh_folder();
};

class FullDisk : public Interrupt {};
class LostReader : public Interrupt {};

TEST_F(Interrupt, Run_LeavesReportLogAndTrace) {
  scenario("forever");
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto* const begin = signal == SIGINT ? "INTERRUPTED: ended by SIGINT (Interrupt): after "
                                               : "INTERRUPTED: ended by SIGTERM (Terminated): after ";
    const auto finished = interrupted({"run", "forever.toml"}, "\n4  ", signal);
    EXPECT_EQ(finished.exit_code, 130);
    EXPECT_EQ(finished.err, kNote);
    EXPECT_THAT(finished.out, HasSubstr(std::string("\n") + begin));
    EXPECT_THAT(finished.out, HasSubstr("0 of 4 ranks had returned\n"));
    for (const char* file :
         {"run.rlog", "report.txt", "report.json", "report.html", "trace.json", "flight_recorder.json"}) {
      EXPECT_TRUE(std::filesystem::exists(folder_ / "rehearse-out/forever" / file)) << file;
    }
    const auto log = sim::read_run_log(folder_ / "rehearse-out/forever/run.rlog");
    ASSERT_TRUE(log.finished);
    EXPECT_EQ(log.finished->report.verdict, Verdict::interrupted);
    for (const auto& line : log.finished->report.rank_lines) {
      EXPECT_THAT(line.state, ::testing::AnyOf(RankOutcome::blocked, RankOutcome::stopped));
      EXPECT_THAT(line.where.text, HasSubstr("job.cpp:"));
    }
    const auto explained = run_process(CLI_JOB, {"explain", "rehearse-out/forever/run.rlog"}, folder_);
    EXPECT_EQ(explained.exit_code, 130);
    EXPECT_THAT(explained.out, StartsWith(begin));
  }
}

TEST_F(Interrupt, ItsLog_ReplaysTheRunUpToWhereItEnds) {
  scenario("forever");
  ASSERT_EQ(interrupted({"run", "forever.toml"}, "\n4  ", SIGINT).exit_code, 130);
  const auto report = sim::report_from_json(read_file(folder_ / "rehearse-out/forever/report.json"));
  const auto again = run_process(CLI_JOB, {"replay", "rehearse-out/forever/run.rlog", "--json"}, folder_);
  EXPECT_EQ(again.exit_code, 130);
  EXPECT_THAT(again.err, HasSubstr("\nthe same run as in the log, identity="));
  const auto replayed = sim::report_from_json(again.out);
  EXPECT_EQ("ended by SIGINT (Interrupt): " + replayed.headline.substr(replayed.headline.find("after ")),
            report.headline);
  EXPECT_THAT(replayed.headline, StartsWith("the log ends here, because its run was interrupted: after "));
  EXPECT_EQ(replayed.identity, report.identity);
  EXPECT_EQ(replayed.switches, report.switches);
}

TEST_F(Interrupt, ASecondRunToCompare_IsCompared_OrNot) {
  scenario("forever");
  const auto finished = interrupted({"run", "forever.toml", "--check-determinism"}, "\n4  ", SIGINT);
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_THAT(finished.out, Not(HasSubstr("a second run, to compare")));
}

TEST_F(Interrupt, ARankThatNeverSwitches_NeedsASecond) {
  scenario("forever", "[parameters]\ncompute = true\n");
  const auto finished = interrupted({"run", "forever.toml"}, "computing", SIGINT, 2);
  EXPECT_EQ(finished.exit_code, 130);
  // On a busy machine, the watchdog names the rank between the signals.
  EXPECT_TRUE(finished.err.starts_with(kNote)) << finished.err;
  EXPECT_THAT(finished.err.substr(std::string_view(kNote).size()),
              MatchesRegex("(rehearse: the run is asked to end, and rank 2 computes at job.cpp:[^\n]*: it ends at the "
                           "next switch; Ctrl-C again ends the process at once\n)?"));
  EXPECT_THAT(finished.out, HasSubstr("\nINTERRUPTED: rank 2 computes and made no call at which it could be ended: "
                                      "ended by a second SIGINT (Interrupt)\n"
                                      "rank 2: still running, at job.cpp:"));
  EXPECT_THAT(finished.out, HasSubstr(" in compute_for_ever; t=0 ns (virtual time)\n"));
  EXPECT_THAT(finished.out, EndsWith("\nreplay: job replay rehearse-out/forever/run.rlog\n"));
  // The command writes this log before the run starts.
  EXPECT_EQ(sim::read_run_log(folder_ / "rehearse-out/forever/run.rlog").seed, 1u);
}

// A script's background process ignores Ctrl-C, which is meant for the foreground.
TEST_F(Interrupt, InTheBackgroundOfAScript_IsIgnored) {
  scenario("sum", "[parameters]\nsteps = 1000\n");
  const auto finished = shell("trap '' INT; '" CLI_JOB "' run sum.toml --quiet & kill -INT $!; wait $!");
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, "");
}

TEST_F(Interrupt, Sweep_ReportsWhatItFound) {
  scenario("races");
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto finished =
        interrupted({"sweep", "races.toml", "--seeds=1..100000000", "--keep-going", "--junit=out.xml", "--jobs=3"},
                    "jobs=", signal);
    EXPECT_EQ(finished.exit_code, 130);
    EXPECT_EQ(finished.err,
              "interrupted: what the sweep found so far follows; a second Ctrl-C ends the process at once\n");
    EXPECT_THAT(finished.out, HasSubstr("\nINTERRUPTED: "));
    EXPECT_THAT(finished.out, HasSubstr(" seeds not run\n"));
    EXPECT_THAT(finished.out, Not(HasSubstr("OK: ")));
    EXPECT_THAT(finished.out, Not(HasSubstr("CRASHED")));  // the deaths of workers are not reported as crashes
    EXPECT_THAT(read_file(folder_ / "out.xml"), HasSubstr("</testsuites>\n"));
    EXPECT_EQ(left_behind(), 0);
  }
}

TEST_F(Interrupt, SweepOfSeedsThatNeverEnd_LeavesNoProcessBehind) {
  scenario("forever", "[parameters]\ncompute = true\n");
  const auto finished =
      interrupted({"sweep", "forever.toml", "--seeds=1..100", "--jobs=3", "--junit=out.xml"}, "jobs=", SIGINT);
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_THAT(finished.out, HasSubstr("\nINTERRUPTED: 100 seeds not run\n"));
  EXPECT_THAT(read_file(folder_ / "out.xml"), HasSubstr("<testsuites tests=\"0\""));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "rehearse-out/forever"));
  EXPECT_EQ(left_behind(), 0);
}

TEST_F(Interrupt, SweepThatIsKilled_LeavesNoProcessBehind) {
  scenario("forever", "[parameters]\ncompute = true\n");
  const auto finished = interrupted({"sweep", "forever.toml", "--seeds=1..100", "--jobs=3"}, "jobs=", SIGKILL);
  EXPECT_EQ(finished.exit_code, -SIGKILL);
  while (left_behind() > 0) usleep(1'000);  // the test's time limit is the check
}

TEST_F(FullDisk, RunStillPrintsItsReport) {
  scenario("sum");
  const auto finished = with_a_full_disk("run sum.toml --quiet");
  EXPECT_THAT(finished.out, StartsWith("OK: 4 ranks returned after 120 us of virtual time\n"));
  EXPECT_THAT(finished.out, HasSubstr(" run sum.toml\n"));
  EXPECT_THAT(finished.out, Not(HasSubstr("files:")));
  EXPECT_EQ(finished.err,
            "rehearse-out/sum/run.rlog: cannot be written: File too large; the files of this run are missing or "
            "incomplete\nexit code 74\n");
}

TEST_F(FullDisk, AVerdict_CountsMoreThanTheFiles) {
  scenario("skip");
  const auto finished = with_a_full_disk("run skip.toml --quiet");
  EXPECT_THAT(finished.out, StartsWith("DEADLOCK: "));
  EXPECT_THAT(finished.err, HasSubstr("\nexit code 3\n"));
}

TEST_F(FullDisk, AVerdictThatIsExpected_CountsAsOk) {
  scenario("skip");
  write_file(folder_ / "skip.toml", "expect = \"DEADLOCK\"\n" + read_file(folder_ / "skip.toml"));
  const auto finished = with_a_full_disk("run skip.toml --quiet");
  EXPECT_THAT(finished.out, StartsWith("DEADLOCK: "));
  EXPECT_THAT(finished.err, HasSubstr("\nexit code 74\n"));
}

TEST_F(FullDisk, Stdout_IsReported) {
  scenario("skip");
  scenario("sum");
  const std::pair<const char*, int> commands[] = {{"list", 74},
                                                  {"--help", 74},
                                                  {"run sum.toml", 74},
                                                  {"sweep sum.toml --seeds=1..3", 74},
                                                  {"replay rehearse-out/sum/run.rlog", 74},
                                                  {"explain rehearse-out/sum/run.rlog", 74},
                                                  {"run skip.toml", 3},
                                                  {"sweep skip.toml --seeds=1..3", 3}};
  for (const auto& [command, exit_code] : commands) {
    const auto finished = shell("'" CLI_JOB "' " + std::string(command) + " >/dev/full");
    EXPECT_EQ(finished.exit_code, exit_code) << command;
    EXPECT_EQ(finished.err, "stdout: cannot be written: No space left on device\n") << command;
  }
}

// stdout is closed, so its file descriptor is free. The command must not open one of the run's files under it.
TEST_F(FullDisk, ClosedStdout_IsReported) {
  scenario("prints");
  const auto finished = shell("'" CLI_JOB "' run prints.toml >&-");
  EXPECT_EQ(finished.exit_code, 74);
  EXPECT_EQ(finished.err, "stdout: cannot be written: Bad file descriptor\n");
  EXPECT_EQ(sim::read_run_log(folder_ / "rehearse-out/prints/run.rlog").finished->report.verdict, Verdict::ok);
  EXPECT_EQ(shell("'" CLI_JOB "' run prints.toml --json >&- 2>&-").exit_code, 74);
}

TEST_F(FullDisk, Junit_CostsNotTheSummary) {
  scenario("sum");
  const auto finished = with_a_full_disk("sweep sum.toml --seeds=1..3 --quiet --junit=out.xml");
  EXPECT_EQ(finished.out, "OK: 3 seeds of sum found nothing (3 different runs)\n");
  EXPECT_EQ(finished.err, "out.xml: cannot be written: File too large\nexit code 74\n");
}

TEST_F(LostReader, CostsNoFiles) {
  scenario("sum", "[parameters]\nsteps = 100\n");
  const auto finished = shell("{ '" CLI_JOB "' run sum.toml; echo \"exit code $?\" >&2; } | head -n 1");
  EXPECT_EQ(finished.out, "rehearse 0.1.0 program=sum seed=1 schedule=random ranks=4\n");
  EXPECT_EQ(finished.err, "exit code 0\n");
  EXPECT_TRUE(sim::read_run_log(folder_ / "rehearse-out/sum/run.rlog").finished);
}

}  // namespace
}  // namespace rehearse::test
