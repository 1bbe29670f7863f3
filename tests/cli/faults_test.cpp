// SPDX-License-Identifier: BSD-3-Clause
// Contract: faults from the command line and from scenarios work alike, appear in log and report, and replay. A
// scenario that expects a verdict is a test.
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/sim/report_writers.h>

#include "cli/process.h"

namespace rehearse::test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCrash = "--fault=crash rank=3 at=allreduce#2";
constexpr const char* kTable = "[[fault]]\ndo = \"crash\"\nrank = 3\nat = \"allreduce#2\"\n";

class Faults : public ::testing::Test {
 protected:
  void scenario(const std::string& first, const std::string& last = "") const {
    write_file(folder_ / "sum.toml", "program = \"sum\"\n" + first + "[world]\nranks = 4\n" + last);
  }
  Finished job(const std::vector<std::string>& arguments) const { return run_process(CLI_JOB, arguments, folder_); }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(Faults, OfTheCommandLine_AreInTheReportAndReplay) {
  scenario("");
  const auto finished = job({"run", "sum.toml", kCrash, "--fault=pause rank=0 at=allreduce#1 for=1ms"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_THAT(finished.out, HasSubstr("DEADLOCK: allreduce #2 on group \"world\": rank 3 crashed and will never come"));
  EXPECT_THAT(finished.out, HasSubstr("fault: crash rank=3 at=allreduce#2: fired on rank 3 in allreduce #2 on group"));
  const auto report = sim::report_from_json(job({"explain", "rehearse-out/sum/run.rlog", "--json"}).out);
  ASSERT_EQ(report.faults.size(), 2u);
  EXPECT_EQ(report.faults[0].fault, "crash rank=3 at=allreduce#2");
  EXPECT_EQ(report.faults[1].times, 1u);
  EXPECT_EQ(report.rank_lines[3].state, RankOutcome::crashed);
  const auto again = job({"replay", "rehearse-out/sum/run.rlog"});
  EXPECT_EQ(again.exit_code, 3);
  EXPECT_THAT(again.out, HasSubstr("the same run as in the log"));
}

TEST_F(Faults, OfAScenario_MeetWhatItExpects) {
  scenario("expect = \"DEADLOCK\"\n", kTable);
  EXPECT_EQ(job({"run", "sum.toml"}).exit_code, 0);
}

TEST_F(Faults, ExpectedVerdictThatDoesNotCome_Is7) {
  scenario("expect = \"DEADLOCK\"\n");
  const auto finished = job({"run", "sum.toml"});
  EXPECT_EQ(finished.exit_code, 7);
  EXPECT_THAT(finished.err, HasSubstr("expected DEADLOCK: the run ended as OK"));
}

TEST_F(Faults, ThatDidNotFire_Is7) {
  scenario("");
  const auto finished = job({"run", "sum.toml", "--fault=crash rank=3 at=allreduce#9"});
  EXPECT_EQ(finished.exit_code, 7);
  EXPECT_THAT(finished.out, HasSubstr("FAULT NOT FIRED: crash rank=3 at=allreduce#9: no call fitted; rank 3 made 4 "));
}

// The log may be the only copy of a schedule that fails.
TEST_F(Faults, ThatAreRefused_CostNoFileOfTheLastRun) {
  scenario("");
  ASSERT_EQ(job({"run", "sum.toml", kCrash}).exit_code, 3);
  ASSERT_EQ(job({"sweep", "sum.toml", kCrash, "--seeds=1..2", "--jobs=1"}).exit_code, 3);
  const auto files = [&] {
    std::map<std::string, std::string> contents;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "rehearse-out")) {
      if (entry.is_regular_file()) contents[entry.path().string()] = read_file(entry.path());
    }
    return contents;
  };
  const auto before = files();
  EXPECT_GE(before.size(), 6u);
  const std::vector<std::vector<std::string>> refused = {
      {"run", "sum.toml"}, {"run", "sum.toml", "--check-determinism"}, {"sweep", "sum.toml", "--seeds=1..2"}};
  for (auto words : refused) {
    words.emplace_back("--fault=crash rank=9 at=allreduce#1");
    EXPECT_EQ(job(words).exit_code, 64);
    EXPECT_EQ(files(), before);
  }
  scenario("[swarm]\non = true\nfamilies = [\"crash rank=7\"]\n");
  EXPECT_EQ(job({"run", "sum.toml"}).exit_code, 64);
  EXPECT_EQ(files(), before);
  scenario("");
  std::filesystem::remove(folder_ / "rehearse-out/sum/trace.json");
  std::filesystem::create_directories(folder_ / "rehearse-out/sum/trace.json/of_mine");
  EXPECT_EQ(job({"run", "sum.toml"}).exit_code, 64);
  EXPECT_EQ(files().size(), before.size() - 1);
  std::filesystem::remove_all(folder_ / "rehearse-out/sum/trace.json");
  EXPECT_EQ(job({"run", "sum.toml"}).exit_code, 0);
  EXPECT_NE(files(), before);
}

TEST_F(Faults, Mistakes_AreRefused) {
  scenario("");
  const auto typed = job({"run", "sum.toml", "--fault=crash rank=3 at=allreduc#2"});
  EXPECT_EQ(typed.exit_code, 64);
  EXPECT_THAT(
      typed.err,
      HasSubstr("--fault is \"crash rank=3 at=allreduc#2\": at is \"allreduc#2\" (did you mean \"allreduce#2\"?)"));
  const auto large = job({"run", "sum.toml", "--fault=" + std::string(100'000, 'x')});
  EXPECT_EQ(large.exit_code, 64);
  EXPECT_THAT(large.err,
              HasSubstr("--fault is \"" + std::string(80, 'x') + "...\": there is no fault \"" + std::string(80, 'x')));
  EXPECT_LT(large.err.size(), 1000u);
  const auto beyond = job({"run", "sum.toml", "--fault=crash rank=4 at=allreduce#2"});
  EXPECT_EQ(beyond.exit_code, 64);
  EXPECT_THAT(beyond.err, HasSubstr("rank is 4; the world has ranks 0 to 3"));
  const auto real = job({"run", "sum.toml", "--real", kCrash});
  EXPECT_EQ(real.exit_code, 64);
  EXPECT_THAT(real.err, HasSubstr("fault \"crash rank=3 at=allreduce#2\" works in simulations only"));
  for (const auto* const option : {"--check-buffers", "--check-sharing", "--checks=all"}) {
    const auto refused = job({"run", "sum.toml", "--with=gloo", option});
    EXPECT_EQ(refused.exit_code, 64);
    EXPECT_THAT(refused.err,
                HasSubstr(std::string("sum.toml: ") + option + " works in simulations only, and this run is"));
  }
  scenario("", "[swarm]\nfamilies = [\"crash\"]\non = true\n");
  const auto swarm = job({"run", "sum.toml", "--with=gloo"});
  EXPECT_EQ(swarm.exit_code, 64);
  EXPECT_THAT(swarm.err, HasSubstr("sum.toml: [swarm] on works in simulations only, and this run is real"));
  scenario("", kTable);
  const auto both = job({"validate", "sum.toml"});
  EXPECT_EQ(both.exit_code, 64);
  EXPECT_THAT(both.err,
              HasSubstr("fault \"crash rank=3 at=allreduce#2\" works in simulations only, and validate runs for"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "rehearse-out/sum/simulation"));
  scenario("", "[[fault]]\ndo = \"crash\"\nrank = 3\n");
  const auto written = job({"run", "sum.toml"});
  EXPECT_EQ(written.exit_code, 64);
  EXPECT_THAT(written.err, HasSubstr("sum.toml:4: [[fault]] crash needs to say when"));
}

// World refuses such a fault, which knows no file.
TEST_F(Faults, OfARankThatTheWorldLacks_NamesTheFile) {
  write_file(folder_ / "far.toml",
             "program = \"sum\"\n[world]\nranks = 4\n[[fault]]\ndo = \"crash\"\nrank = 9\nat = \"allreduce#1\"\n");
  const auto refused = job({"run", "far.toml"});
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_EQ(refused.err, "far.toml: fault \"crash rank=9 at=allreduce#1\": rank is 9; the world has ranks 0 to 3\n");
}

}  // namespace
}  // namespace rehearse::test
