// SPDX-License-Identifier: BSD-3-Clause
// Contract: a sweep compares each run with its scenario's expectation. With --swarm, each seed draws faults from the
// scenario's families, and the report of the seed names them. The shards of a sweep, together, find what the sweep
// without shards finds. Sweeps and replays accept the schedule "pct" like any other schedule.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <rehearse/sim/report_writers.h>

#include "cli/process.h"

namespace rehearse::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kCrashTable = "[[fault]]\ndo = \"crash\"\nrank = 3\nat = \"allreduce#2\"\n";

class Sweeps : public ::testing::Test {
 protected:
  void scenario(const std::string& program, const std::string& first, const std::string& last) const {
    write_file(folder_ / (program + ".toml"),
               "program = \"" + program + "\"\n" + first + "[world]\nranks = 4\n" + last);
  }
  Finished job(const std::vector<std::string>& arguments) const { return run_process(CLI_JOB, arguments, folder_); }
  nlohmann::json json_of(const std::vector<std::string>& arguments) const {
    auto all = arguments;
    all.insert(all.end(), {"--json", "--quiet"});
    return nlohmann::json::parse(job(all).out);
  }

  const std::filesystem::path folder_ = fresh_folder();
};

using Expected = Sweeps;
using Swarm = Sweeps;
using Shards = Sweeps;
using Priorities = Sweeps;

TEST_F(Expected, Verdict_IsNoFailure) {
  scenario("sum", "expect = \"DEADLOCK\"\n", kCrashTable);
  const auto finished = job({"sweep", "sum.toml", "--seeds=1..10", "--quiet"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.out, StartsWith("OK: 10 seeds of sum ended as DEADLOCK, as expected"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "rehearse-out/sum/seed-1"));
}

TEST_F(Expected, VerdictThatDoesNotCome_Is7) {
  scenario("sum", "expect = \"DEADLOCK\"\n", "");
  const auto finished = job({"sweep", "sum.toml", "--seeds=1..10", "--quiet"});
  EXPECT_EQ(finished.exit_code, 7);
  EXPECT_THAT(finished.out, HasSubstr("expected DEADLOCK: the run ended as OK: 4 ranks returned"));
}

constexpr const char* kLateTable = "[[fault]]\ndo = \"crash\"\nrank = 3\nat = \"allreduce#9\"\n";

TEST_F(Expected, FaultThatDidNotFire_Is7) {
  scenario("sum", "expect = \"DEADLOCK\"\n", std::string(kCrashTable) + kLateTable);
  const auto finished = job({"sweep", "sum.toml", "--seeds=1..2", "--quiet"});
  EXPECT_EQ(finished.exit_code, 7);
  EXPECT_THAT(finished.out, HasSubstr("expected DEADLOCK: the run ended as DEADLOCK, and a fault did not fire"));
}

TEST_F(Expected, FaultNotFired_IsMetByOneThatDidNotFire) {
  scenario("sum", "expect = \"FAULT NOT FIRED\"\n", kLateTable);
  EXPECT_EQ(job({"run", "sum.toml"}).exit_code, 0);
  const auto finished = job({"sweep", "sum.toml", "--seeds=1..2", "--quiet"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.out, StartsWith("OK: 2 seeds of sum ended as FAULT NOT FIRED, as expected"));
}

TEST_F(Expected, FaultNotFired_IsNotMetWhereAllFired) {
  scenario("sum", "expect = \"FAULT NOT FIRED\"\n", "[[fault]]\ndo = \"pause\"\nat = \"#1\"\nfor = \"1ms\"\n");
  const auto finished = job({"run", "sum.toml"});
  EXPECT_EQ(finished.exit_code, 7);
  EXPECT_THAT(finished.err, HasSubstr("expected FAULT NOT FIRED: the run ended as OK\n"));
}

TEST_F(Expected, OtherFailure_HasItsOwnCode) {
  scenario("throws", "expect = \"DEADLOCK\"\n", "");
  EXPECT_EQ(job({"sweep", "throws.toml", "--seeds=1..2", "--quiet"}).exit_code, 1);
}

TEST_F(Swarm, DrawsFromTheFamilies) {
  scenario("sum", "", "[swarm]\nfamilies = [\"crash peers=disconnect\", \"pause for=1ms\"]\ncalls = 4\n");
  const auto all = json_of({"sweep", "sum.toml", "--seeds=1..40", "--keep-going", "--swarm"});
  EXPECT_EQ(all["ran"], 40);
  std::set<std::string> drawn;
  std::size_t failed = 0;
  for (const auto& bug : all["bugs"]) {
    failed += bug["seeds"].size();
    for (const auto& fault : bug["first_report"]["faults"])
      drawn.insert(fault["fault"].get<std::string>().substr(0, 5));
  }
  EXPECT_TRUE(drawn.contains("crash"));
  EXPECT_GT(failed, 4u);
  EXPECT_LT(failed, 36u) << "about half of the seeds draw a crash";
  // Without the flag, the same seeds draw no faults.
  EXPECT_EQ(job({"sweep", "sum.toml", "--seeds=1..40", "--quiet"}).exit_code, 0);
}

TEST_F(Swarm, OfASeed_IsTheSameAloneAndReplays) {
  scenario("sum", "", "[swarm]\nfamilies = [\"crash peers=disconnect\"]\ncalls = 4\n");
  const auto swept = json_of({"sweep", "sum.toml", "--seeds=1..20", "--swarm"});
  const auto report = swept["bugs"][0]["first_report"];
  const auto seed = std::to_string(swept["bugs"][0]["seeds"][0].get<std::uint64_t>());
  ASSERT_EQ(report["faults"].size(), 1u);
  EXPECT_EQ(report["faults"][0]["times"], 1);
  EXPECT_EQ(report["faults"][0]["optional"], true);
  const auto again = job({"replay", "rehearse-out/sum/seed-" + seed + "/run.rlog"});
  EXPECT_THAT(again.out, HasSubstr("the same run as in the log"));
  EXPECT_THAT(again.out, HasSubstr("fault: " + report["faults"][0]["fault"].get<std::string>() + ": fired on rank "));
}

TEST_F(Swarm, OfASeed_ReplaysWithoutItsLogAsInTheSweep) {
  scenario("races", "", "[swarm]\nfamilies = [\"crash peers=disconnect\", \"pause for=1ms\"]\ncalls = 4\n");
  const auto swept = json_of({"sweep", "races.toml", "--seeds=1..20", "--swarm", "--ranks=5", "--keep-going"});
  ASSERT_GT(swept["bugs"].size(), 1u);
  std::size_t faults = 0;
  for (const auto& bug : swept["bugs"]) {
    const auto& report = bug["first_report"];
    for (const char* key : {"verdict", "headline", "replay"}) EXPECT_EQ(bug[key], report[key]);
    EXPECT_EQ(bug["count"], bug["seeds"].size());
    faults += bug["faults"].size();
    const auto seed = "--seed=" + std::to_string(bug["seeds"][0].get<std::uint64_t>());
    const auto schedule = "--schedule=" + report["schedule"].get<std::string>();
    EXPECT_EQ(report["replay"], "job replay races.toml " + seed + " --ranks=5 --swarm " + schedule);
    // Without --schedule, it finds the seed's strategy as the sweep has done.
    const auto alone = json_of({"replay", "races.toml", seed, "--ranks=5", "--swarm"});
    EXPECT_EQ(alone["schedule"], report["schedule"]);
    const auto told = json_of({"replay", "races.toml", seed, "--ranks=5", "--swarm", schedule});
    EXPECT_EQ(told["identity"], report["identity"]);
    for (const char* key : {"identity", "verdict", "headline", "faults", "replay"}) EXPECT_EQ(alone[key], report[key]);
  }
  EXPECT_GT(faults, 0u);
}

TEST_F(Swarm, FaultsOfTheCommandLine_AreInEachSeedAndItsReplay) {
  scenario("sum", "", "");
  const auto swept = json_of({"sweep", "sum.toml", "--seeds=3..4", "--fault=crash rank=3 at=allreduce#2"});
  ASSERT_EQ(swept["bugs"].size(), 1u);
  const auto& report = swept["bugs"][0]["first_report"];
  EXPECT_EQ(report["verdict"], "DEADLOCK");
  EXPECT_EQ(report["replay"], "job replay sum.toml --seed=3 --fault='crash rank=3 at=allreduce#2' --schedule=" +
                                  report["schedule"].get<std::string>());
  const auto alone = json_of({"replay", "sum.toml", "--seed=3", "--fault=crash rank=3 at=allreduce#2"});
  for (const char* key : {"identity", "faults"}) EXPECT_EQ(alone[key], report[key]);
}

TEST_F(Swarm, EveryStrategyOfASweep_ReplaysFromItsLine) {
  scenario("sum", "", "");
  const auto report_of_seed = [&](int seed) {
    return nlohmann::json::parse(
        read_file(folder_ / "rehearse-out/sum" / ("seed-" + std::to_string(seed)) / "report.json"));
  };
  constexpr int kSeeds = 9;  // in order, in reverse, and seven strategies
  std::vector<nlohmann::json> reports;
  for (const char* jobs : {"--jobs=1", "--jobs=4"}) {
    json_of({"sweep", "sum.toml", "--seeds=1..9", "--fault=crash rank=3 at=allreduce#2", "--keep-going", jobs});
    for (int seed = 1; seed <= kSeeds; ++seed) reports.push_back(report_of_seed(seed));
  }
  std::set<std::string> schedules;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const auto& report = reports[static_cast<std::size_t>(seed) - 1];
    EXPECT_EQ(report["identity"], reports[static_cast<std::size_t>(kSeeds + seed) - 1]["identity"]);
    const std::string schedule = report["schedule"], line = report["replay"];
    EXPECT_THAT(line, testing::EndsWith(" --schedule=" + schedule));
    schedules.insert(schedule);
    const auto seed_text = "--seed=" + std::to_string(seed);
    const auto again =
        json_of({"replay", "sum.toml", seed_text, "--fault=crash rank=3 at=allreduce#2", "--schedule=" + schedule});
    for (const char* key : {"identity", "verdict", "faults", "schedule", "replay"}) EXPECT_EQ(again[key], report[key]);
  }
  EXPECT_EQ(schedules.size(), 9u);
}

TEST_F(Swarm, WithALog_IsRefused) {
  scenario("sum", "", "");
  EXPECT_EQ(job({"run", "sum.toml"}).exit_code, 0);
  const auto refused = job({"replay", "rehearse-out/sum/run.rlog", "--swarm"});
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_EQ(refused.err, "rehearse-out/sum/run.rlog: --swarm is for a scenario; the log says what was run\n");
}

TEST_F(Swarm, WithoutFamilies_IsRefused) {
  scenario("sum", "", "");
  const auto none = job({"sweep", "sum.toml", "--seeds=1..20", "--swarm"});
  EXPECT_EQ(none.exit_code, 64);
  EXPECT_THAT(none.err, HasSubstr("--swarm draws from the scenario's [swarm] families, and it has none"));
  scenario("sum", "", "[swarm]\nfamilies = [\"crsh\"]\n");
  const auto wrong = job({"run", "sum.toml"});
  EXPECT_EQ(wrong.exit_code, 64);
  EXPECT_THAT(wrong.err, HasSubstr("sum.toml:5: [swarm] families is \"crsh\"; it takes faults in an array"));
  EXPECT_THAT(wrong.err, HasSubstr("there is no fault \"crsh\" (did you mean \"crash\"?)"));
  scenario("sum", "", "[swarm]\nfamilies = [\"crash on=fault#1\"]\n");
  EXPECT_THAT(job({"run", "sum.toml"}).err, HasSubstr("family \"crash on=fault#1\" is on another fault"));
}

TEST_F(Priorities, FindWhatSomeOrdersShow_AndReplay) {
  write_file(folder_ / "races.toml", "program = \"races\"\n[world]\nranks = 4\nschedule = \"pct\"\npct_steps = 20\n");
  const auto all = json_of({"sweep", "races.toml", "--seeds=1..40", "--keep-going"});
  ASSERT_EQ(all["bugs"].size(), 2u);
  const auto& report = all["bugs"][0]["first_report"];
  EXPECT_EQ(report["schedule"], "pct:3:20+time+preempt");
  const auto seed = std::to_string(all["bugs"][0]["seeds"][0].get<std::uint64_t>());
  const auto again = job({"replay", "rehearse-out/races/seed-" + seed + "/run.rlog"});
  EXPECT_THAT(again.out, HasSubstr("the same run as in the log"));
  const auto from_seed = job({"run", "races.toml", "--seed=" + seed, "--quiet"});
  EXPECT_THAT(from_seed.out, HasSubstr(" schedule=pct:3:20 "));
}

TEST_F(Shards, FindTogetherWhatTheWholeFinds) {
  scenario("races", "", "");
  const auto whole = job({"sweep", "races.toml", "--seeds=1..60", "--keep-going", "--json", "--quiet"});
  for (const auto* const shard : {"1/3", "2/3", "3/3"}) {
    const auto finished = job({"sweep", "races.toml", "--seeds=1..60", "--keep-going", "--quiet", "--jobs=2",
                               std::string("--shard=") + shard});
    EXPECT_THAT(finished.out, HasSubstr(" of 20 seeds"));
  }
  const auto joined = job({"merge", "rehearse-out/races", "--json", "--junit=all.xml"});
  EXPECT_EQ(joined.out, whole.out);
  EXPECT_EQ(joined.exit_code, whole.exit_code);
  EXPECT_THAT(read_file(folder_ / "all.xml"), HasSubstr("<testsuites tests=\"60\" "));
  EXPECT_THAT(job({"merge", "rehearse-out/races"}).out, HasSubstr(" of 60 seeds ("));
}

TEST_F(Shards, InFoldersOfTheirOwn_AreFound) {
  scenario("sum", "", "");
  for (const auto* const shard : {"1/2", "2/2"}) {
    const auto output = std::string("--output=all/job-") + shard[0];
    EXPECT_EQ(job({"sweep", "sum.toml", "--seeds=1..9", "--quiet", output, std::string("--shard=") + shard}).exit_code,
              0);
  }
  EXPECT_EQ(job({"merge", "all"}).out, "OK: 9 seeds of sum found nothing (9 different runs)\n");
  std::filesystem::remove_all(folder_ / "all/job-2");
  const auto part = job({"merge", "all"});
  EXPECT_EQ(part.exit_code, 130);
  EXPECT_EQ(part.err, "all: 1 of 2 shards is missing: 2\n");
  EXPECT_THAT(part.out, StartsWith("INTERRUPTED: 5 seeds not run\n4 seeds of sum found nothing"));
}

TEST_F(Shards, OfOtherScenariosOfTheProgram_AreRefused) {
  scenario("sum", "", "");
  EXPECT_EQ(job({"sweep", "sum.toml", "--seeds=1..9", "--quiet", "--shard=1/2"}).exit_code, 0);
  scenario("sum", "", "timeout = \"1min\"\n");
  EXPECT_EQ(job({"sweep", "sum.toml", "--seeds=1..9", "--quiet", "--shard=2/2"}).exit_code, 0);
  const auto other = job({"merge", "rehearse-out/sum"});
  EXPECT_EQ(other.exit_code, 64);
  EXPECT_THAT(other.err, HasSubstr("a line of the scenario is timeout = \"1min\", not timeout = \"30min\""));
}

TEST_F(Shards, OfOtherSweepsAndOtherFiles_AreRefused) {
  scenario("sum", "", "");
  EXPECT_EQ(job({"sweep", "sum.toml", "--seeds=1..9", "--quiet", "--shard=1/2"}).exit_code, 0);
  EXPECT_EQ(job({"sweep", "sum.toml", "--seeds=1..8", "--quiet", "--shard=2/2"}).exit_code, 0);
  const auto other = job({"merge", "rehearse-out/sum"});
  EXPECT_EQ(other.exit_code, 64);
  EXPECT_THAT(other.err, HasSubstr("the range of seeds is 1..8, not 1..9"));
  write_file(folder_ / "rehearse-out/sum/shard-2-of-2.json", "{\"rehearse_shard\"");
  EXPECT_THAT(job({"merge", "rehearse-out/sum"}).err, HasSubstr("is no shard of a sweep, or is cut off"));
  for (const auto* const wrong : {"3/2", "0/2", "1", "1/0", "a/b"}) {
    const auto finished = job({"sweep", "sum.toml", "--seeds=1..9", std::string("--shard=") + wrong});
    EXPECT_EQ(finished.exit_code, 64);
    EXPECT_THAT(finished.err, HasSubstr("it takes a number and how many there are, as in 2/8"));
  }
  EXPECT_THAT(job({"sweep", "sum.toml", "--seeds=1..3", "--shard=1/4"}).err,
              HasSubstr("it takes no more parts than there are seeds, 3"));
}

}  // namespace
}  // namespace rehearse::test
