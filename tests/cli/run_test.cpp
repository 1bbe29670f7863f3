// SPDX-License-Identifier: BSD-3-Clause
#include <fstream>
#include <regex>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/run_log.h>
#include <nlohmann/json.hpp>

#include "cli/process.h"

// Contract: without --quiet and --json, a run first prints what it runs, and last how to run it again. It leaves its
// files whatever the verdict, and its exit code is the verdict's. `replay` and `explain` work from the files that it
// left.
namespace rehearse::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Removes what differs between machines and versions: rates and hashes.
std::string stable(const std::string& text) {
  const auto no_rates = std::regex_replace(text, std::regex("  [0-9.]+/s(  [0-9.]+ s left)?"), "  RATE");
  return std::regex_replace(no_rates, std::regex("identity=[0-9a-f]{16}"), "identity=HASH");
}

std::string line(const std::string& text, std::size_t number) {
  std::istringstream lines(text);
  std::string result;
  for (std::size_t i = 0; i <= number; ++i) std::getline(lines, result);
  return result;
}

std::string last_line(const std::string& text) { return text.substr(text.rfind('\n', text.size() - 2) + 1); }

std::string unwrapped(const std::string& text) { return std::regex_replace(text, std::regex("\n +"), " "); }

class Command : public ::testing::Test {
 protected:
  void scenario(const std::string& program, const std::string& more = "") const {
    write_file(folder_ / (program + ".toml"), "program = \"" + program + "\"\n[world]\nranks = 4\n" + more);
  }

  Finished job(const std::vector<std::string>& arguments) const { return run_process(CLI_JOB, arguments, folder_); }

  bool has(const std::string& file) const { return std::filesystem::exists(folder_ / file); }

  const std::filesystem::path folder_ = fresh_folder();
};

class Run : public Command {};
class Replay : public Command {};
class Explain : public Command {};

TEST_F(Run, GoodProgram_SaysWhatRanAndWhatWasChecked) {
  scenario("sum");
  const auto finished = job({"run", "sum.toml"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, "");
  EXPECT_EQ(stable(finished.out),
            "rehearse 0.1.0 program=sum seed=1 schedule=random ranks=4\n"
            "1/4 25%  RATE  hello\n"
            "2/4 50%  RATE  hello\n"
            "3/4 75%  RATE  hello\n"
            "4/4 100%  RATE  hello\n"
            "OK: 4 ranks returned after 120 us of virtual time\n"
            "ranks 0-3: returned; t=120 us (virtual time)\n"
            "checks: the sum is right (held 16 times)\n"
            "rehearse 0.1.0 program=sum ranks=4 seed=1 schedule=random identity=HASH\n"
            "ran 16 operations in 120 us of virtual time, with " +
                line(finished.out, 9).substr(50) +
                "\n"
                "files: rehearse-out/sum/run.rlog, rehearse-out/sum/report.txt, rehearse-out/sum/report.json,\n"
                "  rehearse-out/sum/report.html, rehearse-out/sum/trace.json, rehearse-out/sum/flight_recorder.json\n"
                "replay: job replay rehearse-out/sum/run.rlog\n");
  for (const char* file :
       {"run.rlog", "report.txt", "report.json", "report.html", "trace.json", "flight_recorder.json"}) {
    EXPECT_TRUE(has(std::string("rehearse-out/sum/") + file)) << file;
  }
}

TEST_F(Run, EachVerdict_HasItsExitCodeAndLeavesAllFiles) {
  const struct {
    const char* program;
    int exit_code;
    const char* verdict;
  } cases[] = {
      {"skip", 3, "DEADLOCK: allreduce #2 on group \"world\""},
      {"swap", 2, "MISMATCH: "},
      {"throws", 1, "RANK FAILED: rank 1: the dataset is empty"},
      {"wrong", 6, "CHECK FAILED: "},
      {"waits", 5, "LIVELOCK: "},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.program);
    scenario(one.program);
    const auto finished = job({"run", std::string(one.program) + ".toml"});
    EXPECT_EQ(finished.exit_code, one.exit_code);
    EXPECT_EQ(finished.err, "");
    EXPECT_EQ(line(finished.out, 1), "repeating the run without its output, to find the lines of its calls");
    EXPECT_THAT(line(finished.out, 2), StartsWith(one.verdict));
    const std::string folder = std::string("rehearse-out/") + one.program;
    EXPECT_EQ(last_line(finished.out), "replay: job replay " + folder + "/run.rlog\n");
    for (const char* file :
         {"/run.rlog", "/report.txt", "/report.json", "/report.html", "/trace.json", "/flight_recorder.json"}) {
      EXPECT_TRUE(has(folder + file)) << file;
    }
  }
}

TEST_F(Run, Options_GoBeforeTheScenario) {
  scenario("sum", "seed = 5\n");
  const auto finished = job({"run", "sum.toml", "--seed=0x10", "--ranks", "2", "--output=else where", "--quiet"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.out, HasSubstr("program=sum ranks=2 seed=16 "));
  EXPECT_EQ(last_line(finished.out), "replay: job replay 'else where/run.rlog'\n");
  EXPECT_FALSE(has("rehearse-out"));
}

TEST_F(Run, Quiet_PrintsTheReportOnly) {
  scenario("sum");
  const auto finished = job({"run", "sum.toml", "--quiet"});
  EXPECT_EQ(finished.out, read_file(folder_ / "rehearse-out/sum/report.txt"));
}

TEST_F(Run, Json_HasStdoutForItself) {
  scenario("skip");
  const auto finished = job({"run", "skip.toml", "--json"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(finished.err,
            "rehearse 0.1.0 program=skip seed=1 schedule=random ranks=4\n"
            "repeating the run without its output, to find the lines of its calls\n");
  EXPECT_EQ(finished.out, read_file(folder_ / "rehearse-out/skip/report.json"));
  EXPECT_EQ(sim::report_from_json(finished.out).verdict, Verdict::deadlock);
}

// A call that never completed stays "scheduled".
TEST_F(Run, FlightRecorder_HasEachRanksCalls) {
  for (const char* seed : {"--seed=1", "--seed=2", "--seed=3"}) {
    scenario("sum");
    ASSERT_EQ(job({"run", "sum.toml", seed}).exit_code, 0);
    const auto run = nlohmann::json::parse(read_file(folder_ / "rehearse-out/sum/flight_recorder.json"));
    ASSERT_EQ(run["entries"].size(), 4u);
    for (const auto& entries : run["entries"]) {
      ASSERT_EQ(entries.size(), 4u);
      for (std::size_t i = 0; i < entries.size(); ++i) {
        EXPECT_EQ(entries[i]["record_id"], i);
        EXPECT_EQ(entries[i]["collective_seq_id"], i + 1);
        EXPECT_EQ(entries[i]["state"], "completed");
      }
    }
  }
  scenario("skip");
  ASSERT_EQ(job({"run", "skip.toml"}).exit_code, 3);
  const auto run = nlohmann::json::parse(read_file(folder_ / "rehearse-out/skip/flight_recorder.json"));
  std::vector<std::string> last;
  for (const auto& entries : run["entries"]) last.push_back(entries.empty() ? "none" : entries.back()["state"]);
  EXPECT_EQ(last, (std::vector<std::string>{"scheduled", "completed", "scheduled", "scheduled"}));
}

TEST_F(Run, OutputSwitches_LeaveFilesOutAndNoStaleOnes) {
  scenario("sum");
  ASSERT_EQ(job({"run", "sum.toml"}).exit_code, 0);
  scenario("sum", "[output]\nreport = false\njson = false\nhtml = false\ntrace = false\nflight_recorder = false\n");
  const auto finished = job({"run", "sum.toml"});
  EXPECT_THAT(finished.out, HasSubstr("\nfiles: rehearse-out/sum/run.rlog\n"));
  EXPECT_TRUE(has("rehearse-out/sum/run.rlog"));
  for (const char* file : {"report.txt", "report.json", "report.html", "trace.json", "flight_recorder.json"}) {
    EXPECT_FALSE(has(std::string("rehearse-out/sum/") + file)) << file;
  }
}

TEST_F(Run, NameOfAProgram_IsEnough) {
  const auto finished = job({"run", "sum", "--ranks=3"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr(" program=sum ranks=3 seed=1 "));
  EXPECT_EQ(last_line(finished.out), "replay: job replay rehearse-out/sum/run.rlog\n");
  EXPECT_EQ(job({"replay", "rehearse-out/sum/run.rlog", "--quiet"}).exit_code, 0);
  EXPECT_EQ(job({"sweep", "sum", "--ranks=3", "--seeds=1..3", "--quiet"}).exit_code, 0);
  EXPECT_THAT(job({"replay", "sum", "--seed=7", "--quiet"}).out, HasSubstr(" program=sum ranks=2 seed=7 "));
  EXPECT_THAT(job({"run", "summ"}).err, HasSubstr(" (did you mean the program \"sum\"?)\n"));
}

// `merge` would take them for ranks of the later run.
TEST_F(Run, AfterARealRun_LeavesNoFilesOfItsRanks) {
  scenario("sum");
  const auto rank = folder_ / "rehearse-out/sum/rank-0";
  std::filesystem::create_directories(rank);
  write_file(rank / "report.json", "earlier");
  EXPECT_EQ(job({"run", "sum.toml", "--quiet"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(rank));
}

TEST_F(Run, FolderThatCannotBeMade_IsRefused) {
  scenario("sum");
  write_file(folder_ / "blocked", "");
  const auto finished = job({"run", "sum.toml", "--output=blocked/here"});
  EXPECT_EQ(finished.exit_code, 64);
  EXPECT_EQ(finished.out, "");
  EXPECT_EQ(finished.err,
            "blocked/here: cannot be made: Not a directory; --output=DIR or the scenario's [output] "
            "directory names "
            "another folder\n");
}

// Writing the trace would take many times as long as the run.
TEST_F(Run, TraceOfVeryManyOperations_IsWrittenOnlyWhereAskedFor) {
  const std::string parameters = "[parameters]\nsteps = 1000\nshow = false\n";
  scenario("sum", parameters);
  const auto finished = job({"run", "sum.toml", "--ranks=51", "--quiet"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(
      finished.out,
      HasSubstr("remark: report.html, trace.json and flight_recorder.json left out, of a run of more than 50000 "
                "operations; html = true,\n  trace = true and flight_recorder = true under [output] would have "
                "written them\n"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "rehearse-out/sum/trace.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "rehearse-out/sum/flight_recorder.json"));
  scenario("sum", parameters + "[output]\ntrace = true\n");
  const auto asked = job({"run", "sum.toml", "--ranks=51", "--quiet"});
  EXPECT_THAT(asked.out, HasSubstr("remark: report.html and flight_recorder.json left out"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "rehearse-out/sum/trace.json"));
  EXPECT_THAT(job({"run", "sum.toml", "--ranks=4", "--quiet"}).out, Not(HasSubstr("remark: ")));
}

// The address space has room for several thousand stacks of 16 GiB, but not for 65,536.
TEST_F(Run, MoreStacksThanThereIsRoomFor_AreRefused) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer writes an eighth of each stack's size to forget what had been there";
#endif
  scenario("sum", "stack = \"16GiB\"\n");
  const auto finished = job({"run", "sum.toml", "--ranks=65536", "--quiet"});
  EXPECT_EQ(finished.exit_code, 71);
  EXPECT_EQ(finished.out, "");
  EXPECT_EQ(finished.err,
            "cannot map another fiber stack of 16777216 KiB (the system has no more address space to give; fewer "
            "ranks, or smaller stacks, take less): Cannot allocate memory\n");
}

// By default, Linux allows fewer memory maps than 65,536 ranks need.
TEST_F(Run, MoreRanksThanMemoryMaps_NamesTheLimitAndWhatRaisesIt) {
  std::size_t maps = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> maps;
  if (maps >= std::size_t{2} * 65'536) GTEST_SKIP() << "vm.max_map_count is " << maps;
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer needs memory maps of its own, and ends the process where there are none";
#endif
  scenario("sum");
  const auto finished = job({"run", "sum.toml", "--ranks=65536", "--quiet"});
  EXPECT_EQ(finished.exit_code, 71);
  EXPECT_THAT(finished.err, HasSubstr("each takes 2 memory maps, and vm.max_map_count is " + std::to_string(maps) +
                                      ", enough for some " + std::to_string(maps / 2) +
                                      " ranks; sysctl -w vm.max_map_count=135168 is enough for 65536): "));
}

TEST_F(Run, SameSeed_IsTheSameRun) {
  scenario("sum");
  const auto identity = [&](const char* seed) {
    return sim::report_from_json(job({"run", "sum.toml", "--json", seed}).out).identity;
  };
  const auto first = identity("--seed=3");
  EXPECT_EQ(identity("--seed=3"), first);
  EXPECT_NE(identity("--seed=4"), first);
}

TEST_F(Run, CheckDeterminism_CountsAsACheck) {
  scenario("sum");
  const auto finished = job({"run", "sum.toml", "--check-determinism", "--quiet"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(line(finished.out, 2), "checks: a second run was the same (held once), the sum is right (held 16 times)");
}

TEST_F(Run, CheckDeterminism_NamesTheFirstDecisionThatDiffers) {
  scenario("moody");
  const auto finished = job({"run", "moody.toml", "--check-determinism", "--quiet"});
  EXPECT_EQ(finished.exit_code, 4);
  EXPECT_THAT(finished.out, StartsWith("NONDETERMINISM: two runs of seed 1 differ, so "));
  EXPECT_EQ(last_line(finished.out), "replay: job run moody.toml --check-determinism\n");
}

TEST_F(Run, CheckDeterminism_RunsAsOftenAsAsked) {
  scenario("sum");
  EXPECT_THAT(job({"run", "sum.toml", "--check-determinism=3", "--quiet"}).out,
              HasSubstr("checks: other runs were the same (held 2 times), the sum is right (held 16 times)"));
  scenario("moody");
  EXPECT_EQ(last_line(job({"run", "moody.toml", "--check-determinism=3", "--quiet"}).out),
            "replay: job run moody.toml --check-determinism=3\n");
  EXPECT_THAT(job({"run", "sum.toml", "--check-determinism=1"}).err,
              HasSubstr("--check-determinism is \"1\"; it takes an integer from 2 to 1000000"));
}

// A run that fails is repeated for its report, which proves what --check-determinism looks for.
TEST_F(Run, FailureThatDoesNotRepeat_SaysSo) {
  scenario("moody", "[parameters]\nfails = true\n");
  const auto finished = job({"run", "moody.toml", "--quiet"});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(unwrapped(finished.out),
              HasSubstr("\nremark: repeated with the same decisions, the run went another way, so the program uses "
                        "something outside of the seed (a clock, an address, a thread, an earlier run): "));
  scenario("skip");
  EXPECT_THAT(unwrapped(job({"run", "skip.toml", "--quiet"}).out), Not(HasSubstr("went another way")));
}

TEST_F(Replay, SameRun_IsConfirmed) {
  scenario("skip");
  const auto first = job({"run", "skip.toml", "--ranks=3", "--quiet"});
  const auto again = job({"replay", "rehearse-out/skip/run.rlog"});
  EXPECT_EQ(again.exit_code, 3);
  EXPECT_EQ(again.err, "");
  EXPECT_EQ(line(again.out, 0), "rehearse 0.1.0 program=skip seed=1 schedule=random ranks=3");
  EXPECT_THAT(line(again.out, 2), StartsWith("the same run as in the log, identity="));
  const auto report = again.out.substr(again.out.find("DEADLOCK"));
  EXPECT_EQ(report, std::regex_replace(first.out, std::regex("files: [^\n]*(\n  [^\n]*)*\n"), ""));
}

TEST_F(Replay, OtherWay_SaysWhere) {
  scenario("moody");
  ASSERT_EQ(job({"run", "moody.toml"}).exit_code, 0);
  const auto finished = job({"replay", "rehearse-out/moody/run.rlog", "--quiet"});
  EXPECT_EQ(finished.exit_code, 4);
  EXPECT_EQ(finished.err, "");
  EXPECT_THAT(finished.out, StartsWith("NONDETERMINISM: the replay differs from the log: "));
}

// A killed process leaves the log that it wrote before the run.
TEST_F(Replay, RunThatNeverEnded_StartsFromItsSeed) {
  sim::RunLog log;
  log.program = "sum";
  log.seed = 9;
  log.scenario_text = "program = \"sum\"\n[world]\nranks = 2\nseed = 9\n[parameters]\nshow = false\n";
  sim::write_run_log(folder_ / "run.rlog", log);
  const auto finished = job({"replay", "run.rlog"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(line(finished.out, 1), "another build of the program wrote this log, so the replay may differ");
  EXPECT_EQ(line(finished.out, 2), "the run in the log did not end, so this runs its seed from the start");
  EXPECT_THAT(line(finished.out, 3), StartsWith("OK: 2 ranks returned"));
  const auto explained = job({"explain", "run.rlog"});
  EXPECT_EQ(explained.exit_code, 64);
  EXPECT_EQ(
      explained.err,
      "run.rlog: the run of sum with seed 9 did not end, so there is no report in its log (a report.json beside it "
      "may say how it was ended); run it again: job replay "
      "run.rlog\n");
}

TEST_F(Replay, LogOfATest_SaysHowToReplayIt) {
  sim::RunLog log;
  log.program = "Suite.Test";
  sim::write_run_log(folder_ / "run.rlog", log);
  const auto finished = job({"replay", "run.rlog"});
  EXPECT_EQ(finished.exit_code, 64);
  EXPECT_EQ(finished.err, "run.rlog: belongs to the test Suite.Test; run that with REHEARSE_REPLAY=run.rlog\n");
}

TEST_F(Replay, ProgramOfAnotherExecutable_IsRefused) {
  sim::RunLog log;
  log.program = "elsewhere";
  log.scenario_text = "program = \"elsewhere\"\nexecutable = \"bin/other\"\n";
  sim::write_run_log(folder_ / "run.rlog", log);
  const auto finished = job({"replay", "run.rlog"});
  EXPECT_EQ(finished.exit_code, 64);
  EXPECT_EQ(finished.err,
            "run.rlog:1: program \"elsewhere\" is not in this executable; it is in \"bin/other\": run the scenario "
            "with that one\n");
}

TEST_F(Replay, FileThatIsNoLog_IsRefused) {
  write_file(folder_ / "a.txt", "hello\n");
  EXPECT_EQ(job({"replay", "a.txt"}).err, "a.txt: is not a run log of rehearse\n");
  EXPECT_EQ(job({"replay", "nothing.rlog"}).err, "nothing.rlog: cannot be read: No such file or directory\n");
  EXPECT_EQ(job({"explain", "a.txt"}).exit_code, 64);
}

TEST_F(Explain, PrintsTheReportAgain) {
  scenario("swap");
  const auto first = job({"run", "swap.toml", "--quiet"});
  const auto finished = job({"explain", "rehearse-out/swap/run.rlog"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.err, "");
  EXPECT_EQ(finished.out, first.out);
  EXPECT_EQ(job({"explain", "rehearse-out/swap/run.rlog", "--json"}).out,
            read_file(folder_ / "rehearse-out/swap/report.json"));
}

TEST_F(Explain, FromAPipe_IsTheSame) {
  scenario("swap");
  const auto first = job({"run", "swap.toml", "--quiet"});
  for (const char* file : {"run.rlog", "report.json"}) {
    const auto command = std::string("cat rehearse-out/swap/") + file + " | '" CLI_JOB "' explain /dev/stdin";
    const auto finished = run_process("/bin/sh", {"-c", command}, folder_);
    EXPECT_EQ(finished.exit_code, 2) << file;
    EXPECT_EQ(line(finished.out, 0), line(first.out, 0)) << file;
  }
}

}  // namespace
}  // namespace rehearse::test
