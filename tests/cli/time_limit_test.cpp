// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <csignal>
#include <functional>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/run_log.h>
#include <nlohmann/json.hpp>

#include "cli/process.h"

// Contract: a seed that does not end is a failing seed whose report says where its ranks were, and the sweep goes on.
// The limit changes nothing for seeds that end.
namespace rehearse::test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class TimeLimit : public ::testing::Test {
 protected:
  void scenario(const std::string& program, const std::string& more = "") const {
    write_file(folder_ / (program + ".toml"), "program = \"" + program + "\"\n[world]\nranks = 4\n" + more);
  }

  Finished sweep(const std::string& program, const std::vector<std::string>& options) const {
    std::vector<std::string> arguments = {"sweep", program + ".toml", "--quiet", "--keep-going"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_process(CLI_JOB, arguments, folder_);
  }

  Finished run(const std::string& program, const std::vector<std::string>& options) const {
    std::vector<std::string> arguments = {"run", program + ".toml", "--quiet"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_process(CLI_JOB, arguments, folder_);
  }

  Finished replay(const std::string& file, const std::vector<std::string>& options) const {
    std::vector<std::string> arguments = {"replay", file, "--quiet"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_process(CLI_JOB, arguments, folder_);
  }

  Report report_of(const std::string& program, std::uint64_t seed) const {
    return sim::report_from_json(
        read_file(folder_ / "rehearse-out" / program / ("seed-" + std::to_string(seed)) / "report.json"));
  }

  struct Limited {
    Finished finished;
    std::string late;  // "did not end within 1 s (--time-limit)"
  };

  // Runs `command` with a limit of one second. On a busy machine, the ranks may need longer to come to the place where
  // they stay. Therefore repeats the command with a longer limit until `came` returns true.
  static Limited limited(const std::function<Finished(const std::string& option)>& command,
                         const std::function<bool(const Finished& finished)>& came) {
    Limited last;
    for (const std::string seconds : {"1", "4", "16"}) {
      last.finished = command("--time-limit=" + seconds);
      last.late = "did not end within " + seconds + " s (--time-limit)";
      if (came(last.finished)) break;
    }
    return last;
  }

  static bool was_killed(const Finished& finished) {
    return finished.out.find("had to be killed") != std::string::npos;
  }

  static bool have_places(const Report& report) {
    const auto has_place = [](const RankLine& line) { return !line.where.empty(); };
    return std::all_of(report.rank_lines.begin(), report.rank_lines.end(), has_place);
  }

  static std::map<std::string, nlohmann::json> bugs_by_verdict(const std::string& json) {
    std::map<std::string, nlohmann::json> bugs;
    const auto parsed = nlohmann::json::parse(json);
    for (const auto& bug : parsed["bugs"]) bugs[bug["verdict"].get<std::string>()] = bug;
    return bugs;
  }

  const std::filesystem::path folder_ = fresh_folder();
};

// The seeds that deadlock without `may_compute` compute forever with it. All other seeds end as before.
TEST_F(TimeLimit, SeedThatComputesForEver_FailsAndTheOthersGoOn) {
  scenario("races", "preempt = false\n");
  const auto before = bugs_by_verdict(sweep("races", {"--seeds=3..7", "--json"}).out);
  ASSERT_TRUE(before.contains("DEADLOCK") && before.contains("RANK FAILED"));
  scenario("races", "preempt = false\n[parameters]\nmay_compute = true\n");
  const auto [finished, late] = limited(
      [this](const std::string& limit) {
        return sweep("races", {"--seeds=3..7", "--json", limit, "--junit=out.xml", "--jobs=2"});
      },
      [&before](const Finished& swept) {
        return was_killed(swept) &&
               bugs_by_verdict(swept.out)["INTERRUPTED"]["seeds"] == before.at("DEADLOCK")["seeds"];
      });
  const auto after = bugs_by_verdict(finished.out);
  EXPECT_EQ(after.size(), 2u);
  EXPECT_EQ(after.at("RANK FAILED")["seeds"], before.at("RANK FAILED")["seeds"]);
  EXPECT_EQ(after.at("RANK FAILED")["first_report"]["identity"], before.at("RANK FAILED")["first_report"]["identity"]);
  const auto& endless = after.at("INTERRUPTED");
  EXPECT_EQ(endless["seeds"], before.at("DEADLOCK")["seeds"]);
  const std::string headline = endless["first_report"]["headline"];
  EXPECT_THAT(headline, StartsWith(late + " and had to be killed: rank 2 computes"));
  ASSERT_EQ(endless["culprit"].size(), 1u);
  EXPECT_THAT(endless["culprit"][0].get<std::string>(), MatchesRegex("at job.cpp:[0-9]+ in compute_for_ever"));
  EXPECT_THAT(read_file(folder_ / "out.xml"), HasSubstr("<failure type=\"INTERRUPTED\" message=\"" + late));

  // The log reproduces the endless seed: its replay does not end either.
  const auto seed = endless["seeds"][0].get<std::uint64_t>();
  const auto log = "rehearse-out/races/seed-" + std::to_string(seed) + "/run.rlog";
  EXPECT_EQ(sim::read_run_log(folder_ / log).seed, seed);
  EXPECT_THAT(endless["first_report"]["replay"], "job replay " + log);
  EXPECT_EQ(run_and_signal(CLI_JOB, {"replay", log}, folder_, "computing", SIGINT, 2).exit_code, 130);
}

// If the fibers of a run still switch, the run ends on request and leaves a complete report.
TEST_F(TimeLimit, SeedThatSwitchesForEver_SaysWhereItsRanksAre) {
  scenario("forever");
  const auto [finished, late] =
      limited([this](const std::string& limit) { return sweep("forever", {"--seeds=1..3", limit, "--jobs=3"}); },
              [this](const Finished& swept) {
                return !was_killed(swept) && have_places(report_of("forever", 1)) &&
                       have_places(report_of("forever", 2)) && have_places(report_of("forever", 3));
              });
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_THAT(finished.out, StartsWith("FAILED: 3 of 3 seeds, 1 bug\n"
                                       "1. INTERRUPTED, seeds 1, 2, 3: " +
                                       late));
  EXPECT_THAT(finished.out, HasSubstr(late + ": after "));
  EXPECT_THAT(finished.out, HasSubstr("\nreplay: job replay rehearse-out/forever/seed-1/run.rlog\n"));
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto report = report_of("forever", seed);
    EXPECT_EQ(report.verdict, Verdict::interrupted);
    ASSERT_EQ(report.rank_lines.size(), 4u);
    for (const auto& line : report.rank_lines) EXPECT_THAT(line.where.text, HasSubstr("job.cpp:"));
  }
}

TEST_F(TimeLimit, SeedWhoseRankIsBlockedInTheKernel_SaysInWhat) {
  scenario("blocks");
  const auto [finished, late] =
      limited([this](const std::string& limit) { return sweep("blocks", {"--seeds=1..1", limit}); }, was_killed);
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_THAT(finished.out, HasSubstr(late + " and had to be killed: rank 1 is blocked in pause()"));
  EXPECT_THAT(finished.out, HasSubstr("rank 1: blocked in pause(), at job.cpp:"));
}

TEST_F(TimeLimit, RunThatSwitchesForEver_LeavesAWholeReport) {
  scenario("forever");
  for (const std::string option : {"--seed=1", "--check-determinism"}) {
    const auto of_run = [this] {
      return sim::report_from_json(read_file(folder_ / "rehearse-out/forever/report.json"));
    };
    const auto [finished, late] =
        limited([this, &option](const std::string& limit) { return run("forever", {limit, option}); },
                [&of_run](const Finished& ran) { return !was_killed(ran) && have_places(of_run()); });
    EXPECT_EQ(finished.exit_code, 130);
    EXPECT_THAT(finished.out, HasSubstr("INTERRUPTED: " + late + ": after "));
    const auto report = of_run();
    ASSERT_EQ(report.rank_lines.size(), 4u);
    for (const auto& line : report.rank_lines) EXPECT_THAT(line.where.text, HasSubstr("job.cpp:"));
  }
}

TEST_F(TimeLimit, RunWhoseRankComputesForEver_IsKilledAndSaysWhere) {
  scenario("forever", "[parameters]\ncompute = true\n");
  const auto [finished, late] =
      limited([this](const std::string& limit) { return run("forever", {limit}); }, was_killed);
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_THAT(finished.out, HasSubstr("INTERRUPTED: " + late +
                                      " and had to be killed: rank 2 computes\nrank 2: still running, at job.cpp:"));
  EXPECT_THAT(finished.out, HasSubstr("\nreplay: job replay rehearse-out/forever/run.rlog\n"));
  EXPECT_EQ(sim::read_run_log(folder_ / "rehearse-out/forever/run.rlog").seed, 1u);
}

TEST_F(TimeLimit, RunWhoseRankIsBlockedInTheKernel_SaysInWhatAndWhere) {
  scenario("blocks");
  const auto [finished, late] =
      limited([this](const std::string& limit) { return run("blocks", {limit}); }, was_killed);
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_THAT(finished.out,
              HasSubstr("INTERRUPTED: " + late +
                        " and had to be killed: rank 1 is blocked in pause()\nrank 1: blocked in pause(), "
                        "at job.cpp:"));
}

TEST_F(TimeLimit, ReplayThatDoesNotEnd_IsStopped) {
  scenario("forever");
  const auto finished = replay("forever.toml", {"--time-limit=1"});
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_THAT(finished.out, HasSubstr("INTERRUPTED: did not end within 1 s (--time-limit): after "));
}

TEST_F(TimeLimit, LogOfARunThatDidNotEnd_ReplaysUpToTheLimitWithoutOne) {
  scenario("forever");
  ASSERT_EQ(run("forever", {"--time-limit=1"}).exit_code, 130);
  const auto finished = replay("rehearse-out/forever/run.rlog", {});
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_THAT(finished.out, StartsWith("INTERRUPTED: the log ends here, because its run was interrupted: after "));
}

TEST_F(TimeLimit, ReplayWhoseRankComputesForEver_IsKilledAndSaysWhere) {
  scenario("forever", "[parameters]\ncompute = true\n");
  const auto [finished, late] =
      limited([this](const std::string& limit) { return replay("forever.toml", {limit}); }, was_killed);
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_THAT(finished.out, HasSubstr("INTERRUPTED: " + late +
                                      " and had to be killed: rank 2 computes\nrank 2: still running, at job.cpp:"));
}

TEST_F(TimeLimit, RunThatEnds_IsWhatItIsWithout) {
  scenario("sum");
  const auto without = run("sum", {});
  const auto with = run("sum", {"--time-limit=1000"});
  EXPECT_EQ(with.exit_code, 0);
  EXPECT_EQ(with.out, without.out);
  EXPECT_EQ(with.err, without.err);
}

TEST_F(TimeLimit, WhereEverySeedEnds_ChangesNothing) {
  scenario("races", "preempt = false\n");
  const auto without = sweep("races", {"--seeds=1..20", "--json"});
  const auto with = sweep("races", {"--seeds=1..20", "--json", "--time-limit=1000"});
  EXPECT_EQ(with.out, without.out);
  EXPECT_EQ(with.exit_code, without.exit_code);
}

TEST_F(TimeLimit, WrongValue_IsRefused) {
  scenario("sum");
  for (const std::string value : {"0", "-1", "1.5", "10s", "1000001"}) {
    const auto finished = sweep("sum", {"--seeds=1..2", "--time-limit=" + value});
    EXPECT_EQ(finished.exit_code, 64);
    EXPECT_EQ(finished.err, "job sweep: --time-limit is \"" + value +
                                "\"; it takes an integer from 1 to 1000000\nusage: job sweep SCENARIO [options]   (see "
                                "job sweep --help)\n");
  }
}

}  // namespace
}  // namespace rehearse::test
