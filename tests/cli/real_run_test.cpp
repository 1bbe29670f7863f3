// SPDX-License-Identifier: BSD-3-Clause
#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/sim/report_writers.h>
#include <sys/file.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "own_process.h"

// Contract: `run --with=gloo` runs one process per rank and makes one report. Whatever happens to one process, all
// processes end, and the report names the culprit. `merge` makes the same report from the files that the processes
// left.
namespace rehearse::test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class RealRun : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef CLI_HAS_REAL
    GTEST_SKIP() << "built without the real mode (REHEARSE_REAL=OFF)";
#endif
  }

  // No call may expire: a busy machine takes seconds to start a process.
  void scenario(const std::string& program, const std::string& more = "") const {
    write_file(folder_ / (program + ".toml"),
               "program = \"" + program + "\"\n[world]\nranks = 3\ntimeout = \"60s\"\n" + more);
  }

  Finished job(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {}) const {
    return run_process(CLI_JOB, arguments, folder_, environment);
  }

  Report report_of(const std::string& program) const {
    return sim::report_from_json(read_file(folder_ / "rehearse-out" / program / "report.json"));
  }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(RealRun, ByGloo_IsAProcessARankAndOneReport) {
  scenario("sum");
  const auto finished = job({"run", "sum.toml", "--with=gloo"});
  EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  EXPECT_EQ(finished.err, "");
  EXPECT_THAT(finished.out, StartsWith("rehearse 0.1.0 program=sum seed=1 mode=real with=gloo ranks=3\n[0] 1/4 25%"));
  EXPECT_THAT(finished.out, HasSubstr("\nOK: 3 ranks returned after "));
  EXPECT_THAT(finished.out, HasSubstr(" of real time\ntransport: gloo (tcp on lo)\n"));
  EXPECT_THAT(finished.out, HasSubstr("\nchecks: the sum is right (held 12 times)\n"));
  EXPECT_THAT(finished.out, HasSubstr("\nreplay: job run sum.toml --with=gloo\n"));
  EXPECT_THAT(finished.out, Not(HasSubstr("virtual")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "rehearse-out/sum/run.rlog"));
  for (const char* file :
       {"report.txt", "report.json", "report.html", "trace.json", "flight_recorder.json", "calls.json", "results.json",
        "rank-0/report.json", "rank-2/results.json", "rank-1/output.txt"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / "rehearse-out/sum" / file)) << file;
  }
  const auto json = nlohmann::json::parse(read_file(folder_ / "rehearse-out/sum/report.json"));
  EXPECT_EQ(json["mode"], "real");
  EXPECT_EQ(json["transport"], "gloo (tcp on lo)");
  EXPECT_EQ(json["rank_lines"].size(), 3u);
}

TEST_F(RealRun, ByInterfacesThatAreNamed_SaysWhich) {
  scenario("sum");
  const auto finished = job({"run", "sum.toml", "--with=gloo"}, {"GLOO_SOCKET_IFNAME=lo,lo"});
  EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  EXPECT_EQ(report_of("sum").transport, "gloo (tcp on lo, tcp on lo)");
}

// A scenario is for both modes. One remark for all ranks lists the settings that only the simulation supports.
TEST_F(RealRun, OptionsOfTheSimulation_AreReported) {
  scenario("sum", "memory = \"1GiB\"\n[checks]\nreplicas = true\nbuffers = true\n");
  const auto finished = job({"run", "sum.toml", "--with=gloo"});
  EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  const auto* const remark =
      "[checks] replicas, buffers and [world] memory work in simulations only: this real run ignored them";
  EXPECT_THAT(finished.out, HasSubstr(std::string("\nremark: ") + remark + "\n"));
  EXPECT_EQ(report_of("sum").remarks, std::vector<std::string>{remark});
}

TEST_F(RealRun, ADdpThatIsNeverCalled_IsReportedAsInSimulation) {
  scenario("leaves_ddp_out");
  const auto remarks = [&](const std::vector<std::string>& arguments) {
    const auto finished = run_process(CLI_MODES_JOB, arguments, folder_);
    EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
    return report_of("leaves_ddp_out").remarks;
  };
  const auto simulated = remarks({"run", "leaves_ddp_out.toml", "--quiet"});
  ASSERT_EQ(simulated.size(), 1u);
  EXPECT_THAT(simulated[0], StartsWith("ranks 0-2: DDP #1 on group \"world\" was never called, but its module has "));
  EXPECT_EQ(remarks({"run", "leaves_ddp_out.toml", "--with=gloo", "--quiet"}), simulated);
}

TEST_F(RealRun, ExpectedVerdict_IsATest) {
  write_file(folder_ / "throws.toml",
             "program = \"throws\"\nexpect = \"RANK FAILED\"\n[world]\nranks = 3\ntimeout = \"60s\"\n");
  EXPECT_EQ(job({"run", "throws.toml", "--with=gloo", "--quiet"}).exit_code, 0);
  write_file(folder_ / "sum.toml", "program = \"sum\"\nexpect = \"DEADLOCK\"\n[world]\nranks = 3\n");
  const auto other = job({"run", "sum.toml", "--with=gloo", "--quiet"});
  EXPECT_EQ(other.exit_code, 7);
  EXPECT_THAT(other.err, HasSubstr("expected DEADLOCK: the run ended as OK"));
}

TEST_F(RealRun, Json_HasStdoutForItself) {
  scenario("prints");
  const auto finished = job({"run", "prints.toml", "--with=gloo", "--json"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(sim::report_from_json(finished.out).verdict, Verdict::ok);
  EXPECT_THAT(finished.err, HasSubstr("[1] rank 1 is here\n"));
}

TEST_F(RealRun, AnException_IsReportedForItsRankAlone) {
  scenario("throws");
  const auto finished = job({"run", "throws.toml", "--with=gloo", "--quiet"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.out, StartsWith("RANK FAILED: rank 1: the dataset is empty\n"));
}

TEST_F(RealRun, AKilledRank_IsNamedByTheOthers) {
  scenario("dies", "[parameters]\nby = \"kill\"\n");
  const auto finished = job({"run", "dies.toml", "--with=gloo", "--quiet"}, {"REHEARSE_CHECK_TIMEOUT=8"});
  EXPECT_EQ(finished.exit_code, 9);
  EXPECT_THAT(finished.out, HasSubstr("CRASHED: rank 2: the process ended without a word, as SIGKILL ends one"));
  EXPECT_THAT(report_of("dies").headline, Not(HasSubstr("; and ")));  // the surviving ranks did not crash
  scenario("dies", "[parameters]\nby = \"fault\"\n");
  const auto by_fault =
      job({"run", "dies.toml", "--with=gloo", "--quiet"}, {"REHEARSE_CHECK_TIMEOUT=8", "ASAN_OPTIONS=handle_segv=0"});
  EXPECT_EQ(by_fault.exit_code, 9);
  EXPECT_THAT(report_of("dies").headline, StartsWith("rank 2 ended the process by SIGSEGV (Segmentation fault)"));
}

TEST_F(RealRun, CtrlC_EndsAllRanks) {
  scenario("forever");
  const auto finished = run_and_signal(CLI_JOB, {"run", "forever.toml", "--with=gloo"}, folder_, "[0] 1", SIGINT);
  EXPECT_EQ(finished.exit_code, 130) << finished.out << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("interrupted: all ranks are asked to end"));
  EXPECT_EQ(report_of("forever").rank_lines.size(), 3u);
}

TEST_F(RealRun, ASecondCtrlC_KillsTheRanksAndStillReportsAll) {
  scenario("forever", "[parameters]\ncompute = true\n");
  const auto finished =
      run_and_signal(CLI_JOB, {"run", "forever.toml", "--with=gloo"}, folder_, "[2] computing", SIGTERM, 2);
  EXPECT_EQ(finished.exit_code, 130) << finished.out << finished.err;
  EXPECT_EQ(report_of("forever").verdict, Verdict::interrupted);
  EXPECT_EQ(report_of("forever").rank_lines.size(), 3u);
}

TEST_F(RealRun, Ranks_AreNamedAsTheProgram) {
  scenario("forever");
  const auto line = "'" CLI_JOB
                    "' run forever.toml --with=gloo > out 2>&1 & job=$!; until grep -q '\\[0\\] 1' out; do "
                    "kill -0 $job || exit 3; done; ps -o comm= --ppid $job; kill -KILL $job";
  const auto finished = run_process("/bin/bash", {"-c", line}, folder_);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "cli_job\ncli_job\ncli_job\n");
}

TEST_F(RealRun, MoreRanksBefore_LeaveNothingBehind) {
  scenario("prints");
  ASSERT_EQ(job({"run", "prints.toml", "--with=gloo"}).exit_code, 0);
  ASSERT_EQ(job({"run", "prints.toml", "--with=gloo", "--ranks=2"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "rehearse-out/prints/rank-2"));
  EXPECT_EQ(report_of("prints").ranks, 2);
}

// Such a folder would count as that of a rank.
TEST_F(RealRun, FolderOfAnotherRankWithFilesOfTheUser_IsRefusedBeforeTheRun) {
  scenario("prints");
  const auto used = folder_ / "rehearse-out/prints";
  std::filesystem::create_directories(used / "rank-7");
  write_file(used / "rank-7/notes.txt", "mine");
  write_file(used / "report.txt", "earlier");
  const auto refused = job({"run", "prints.toml", "--with=gloo", "--quiet"});
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_EQ(refused.err,
            "rehearse-out/prints/rank-7: cannot be removed: it holds files that no run left; --output=DIR or the "
            "scenario's [output] directory names another folder\n");
  EXPECT_EQ(read_file(used / "report.txt"), "earlier");
  EXPECT_FALSE(std::filesystem::exists(used / "rank-0"));
}

TEST_F(RealRun, AFolderThatAnotherRunUses_IsRefusedAndLeftAlone) {
  scenario("prints");
  const auto used = folder_ / "rehearse-out/prints";
  std::filesystem::create_directories(used / "rank-1");
  write_file(used / "rank-1/report.json", "theirs");
  const int fd = open(used.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
  const auto refused = job({"run", "prints.toml", "--with=gloo", "--quiet"});
  const auto validate = job({"validate", "prints.toml", "--with=gloo", "--quiet"});
  const auto merge = job({"merge", "rehearse-out/prints"});
  close(fd);
  EXPECT_EQ(merge.exit_code, 64);
  EXPECT_EQ(merge.err, "rehearse-out/prints: its run is under way, and merges its ranks itself at its end\n");
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_EQ(refused.err,
            "rehearse-out/prints: cannot be used: another run that is under way leaves its files there; --output=DIR "
            "or the scenario's [output] directory names another folder\n");
  EXPECT_EQ(validate.exit_code, 64);
  EXPECT_EQ(validate.err, refused.err);
  EXPECT_EQ(read_file(used / "rank-1/report.json"), "theirs");
  EXPECT_EQ(job({"run", "prints.toml", "--with=gloo", "--quiet"}).exit_code, 0);
}

TEST_F(RealRun, OneOfSeveral_LeavesItsOwnFolderAndSaysHowToMerge) {
  scenario("prints");
  const auto finished =
      job({"run", "prints.toml", "--with=gloo", "--quiet"},
          {"RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(free_port())});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("[0] OK: 1 rank returned after "));
  EXPECT_THAT(finished.out, HasSubstr("all ranks: job merge rehearse-out/prints\n"));
  const auto merged = job({"merge", "rehearse-out/prints"});
  EXPECT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_THAT(merged.out, StartsWith("OK: 1 rank returned after "));
}

TEST_F(RealRun, WhatItCannotDo_IsRefused) {
  scenario("sum");
  write_file(folder_ / "real.toml", "program = \"sum\"\nmode = \"real\"\nwith = \"gloo\"\n");
  EXPECT_EQ(job({"run", "sum.toml", "--with=gloo", "--check-determinism"}).exit_code, 64);
  const auto sweep = job({"sweep", "real.toml", "--seeds=1..2"});
  EXPECT_EQ(sweep.exit_code, 64);
  EXPECT_EQ(sweep.err,
            "real.toml: mode is \"real\", and sweep needs the simulation: a real run cannot repeat a seed\n");
  EXPECT_EQ(job({"replay", "real.toml"}).exit_code, 64);
  const auto ranks = job({"run", "real.toml", "--ranks=4"}, {"RANK=0", "WORLD_SIZE=2"});
  EXPECT_EQ(ranks.exit_code, 64);
  EXPECT_EQ(ranks.err, "--ranks is 4, but RANK says that this job has 2 processes; leave --ranks out\n");
  const auto validate = job({"validate", "sum.toml"}, {"RANK=0", "WORLD_SIZE=2"});
  EXPECT_EQ(validate.exit_code, 64);
  EXPECT_THAT(validate.err, HasSubstr("validate starts the processes of its real run itself"));
}

class Merge : public RealRun {
 protected:
  void SetUp() override {
    RealRun::SetUp();
    if (IsSkipped()) return;
    scenario("prints");
    const auto finished = job({"run", "prints.toml", "--with=gloo"});
    ASSERT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  }

  std::filesystem::path rank(int number) const {
    return folder_ / "rehearse-out/prints" / ("rank-" + std::to_string(number));
  }

  std::string refused() const {
    const auto finished = job({"merge", "rehearse-out/prints"});
    EXPECT_EQ(finished.exit_code, 64);
    return finished.err;
  }
};

TEST_F(Merge, OfTheRanksFiles_MakesTheSameReport) {
  const auto before = report_of("prints");
  std::filesystem::remove(folder_ / "rehearse-out/prints/report.json");
  const auto finished = job({"merge", "rehearse-out/prints", "--json"});
  EXPECT_EQ(finished.exit_code, 0);
  auto after = report_of("prints");
  EXPECT_EQ(after.headline, before.headline);
  EXPECT_EQ(after.replay, "job merge rehearse-out/prints");
  EXPECT_EQ(finished.out, read_file(folder_ / "rehearse-out/prints/report.json"));
}

TEST_F(Merge, WithoutARanksReport_SaysThatItCrashed) {
  std::filesystem::remove_all(rank(1));
  const auto finished = job({"merge", "rehearse-out/prints"});
  EXPECT_EQ(finished.exit_code, 9);
  EXPECT_THAT(finished.out,
              StartsWith("CRASHED: rank 1: left no report: nothing in rehearse-out/prints/rank-1 tells how "));
}

TEST_F(Merge, ADamagedReport_IsRefusedByName) {
  const auto good = read_file(rank(1) / "report.json");
  auto unknown = nlohmann::json::parse(good);
  unknown["verdict"] = "FINE";
  const std::pair<std::string, const char*> cases[] = {
      {"", "not JSON, see byte 1; "},
      {good.substr(0, 200), "not JSON, see byte 201; "},
      {unknown.dump(), "verdict is \"FINE\""},
  };
  for (const auto& [damaged, why] : cases) {
    SCOPED_TRACE(why);
    write_file(rank(1) / "report.json", damaged);
    const auto error = refused();
    EXPECT_THAT(error,
                StartsWith("rehearse-out/prints/rank-1/report.json is no report of rehearse: " + std::string(why)));
    EXPECT_THAT(error, EndsWith("; bring it once more from where the rank left it, or remove it: a rank without a "
                                "report counts as CRASHED\n"));
  }
}

TEST_F(Merge, NumbersOutOfRange_AreDamage) {
  auto json = nlohmann::json::parse(read_file(rank(1) / "report.json"));
  for (const std::int64_t ranks : {-1L, 1L << 30, 1L << 40}) {
    json["ranks"] = ranks;
    for (const int each : {0, 1, 2}) write_file(rank(each) / "report.json", json.dump());
    EXPECT_THAT(refused(), HasSubstr("report.json is no report of rehearse: ranks is "));
    EXPECT_EQ(job({"explain", "rehearse-out/prints/rank-1/report.json"}).exit_code, 64);
  }
}

TEST_F(Merge, ADamagedFileBesideAReport_IsNamedAndLeftOut) {
  const struct {
    const char* file;
    std::string content;
    const char* told;
  } cases[] = {
      {"calls.json", "{", ": is no list of calls of rehearse: not JSON, see byte 2"},
      {"calls.json", R"({"rehearse_calls": 99999999999, "calls": []})", ": is no list of calls of rehearse: "},
      {"calls.json",
       R"({"rehearse_calls": 1, "calls": [{"rank": 2, "process_group_name": "world", "seq_id": 1, "is_p2p": false,)"
       R"( "call": "barrier", "tensors": []}]})",
       ": is not of rank 1: it lists a call of rank 2"},
      {"results.json", "", ": is no list of results of rehearse: not JSON, see byte 1"},
      {"trace.json", "{\"traceEvents\": [{\"ph\": 1}]}", ": is damaged: "},
      {"flight_recorder.json", "[]", ": is damaged: "},
      {"flight_recorder.json", "nonsense", ": not JSON, see byte "},
  };
  for (const auto& [file, content, told] : cases) {
    SCOPED_TRACE(std::string(file) + " " + content.substr(0, 40));
    const auto good = read_file(rank(1) / file);
    ASSERT_NE(good, "");
    write_file(rank(1) / file, content);
    const auto finished = job({"merge", "rehearse-out/prints", "--json"});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    const auto remarks = report_of("prints").remarks;
    ASSERT_EQ(remarks.size(), 1u);
    EXPECT_THAT(remarks[0], StartsWith((std::string("rehearse-out/prints/rank-1/") + file) + told));
    EXPECT_THAT(remarks[0], EndsWith(std::string("; rehearse-out/prints/") + file + " is without it"));
    write_file(rank(1) / file, good);
  }
  EXPECT_EQ(job({"merge", "rehearse-out/prints"}).exit_code, 0);
  EXPECT_TRUE(report_of("prints").remarks.empty());
}

TEST_F(Merge, ANameThatNoRanksFolderHas_IsPassedOver) {
  std::filesystem::rename(rank(1), folder_ / "rehearse-out/prints/rank-01");
  const auto finished = job({"merge", "rehearse-out/prints"});
  EXPECT_EQ(finished.exit_code, 9) << finished.err;
  EXPECT_THAT(finished.out, StartsWith("CRASHED: rank 1: left no report: nothing in "));
}

TEST_F(Merge, FilesThatContradictEachOther_AreRefused) {
  const auto good = read_file(rank(1) / "report.json");
  auto json = nlohmann::json::parse(good);
  json["seed"] = "0x9";
  write_file(rank(1) / "report.json", json.dump());
  EXPECT_THAT(refused(), HasSubstr("is of another run than rank 0's: the seed is 9, not 1"));
  write_file(rank(1) / "report.json", read_file(rank(2) / "report.json"));
  EXPECT_THAT(refused(), HasSubstr("is of rank 2, not 1"));
  json["mode"] = "simulation";
  json["schedule"] = "random";
  write_file(rank(1) / "report.json", json.dump());
  EXPECT_THAT(refused(), HasSubstr("is the report of a simulation"));
  write_file(rank(1) / "report.json", good);
  std::filesystem::rename(rank(2), rank(7));
  EXPECT_THAT(refused(), HasSubstr("is of rank 2, not 7"));
}

TEST_F(Merge, OtherFolders_AreRefused) {
  EXPECT_EQ(job({"merge", "nowhere"}).err, "nowhere: cannot be read: No such file or directory\n");
  EXPECT_THAT(job({"merge", "."}).err, StartsWith(".: has no folder rank-0, rank-1 or so"));
}

}  // namespace
}  // namespace rehearse::test
