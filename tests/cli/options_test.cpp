// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rehearse/job/program.h>

#include "cli/grammar/arguments.h"
#include "cli/job.h"
#include "cli/process.h"
#include "gtest/test_environment.h"
#include "scenario/scenario_keys.h"

// Contract: an option means the same wherever it is set. Each row of the table gets random values; a scenario file, the
// flag, the options of a replay line and the environment variable then lead to the same printed scenario.

REHEARSE_PROGRAM(optional){.summary = "for these tests",
                           .body = [](rehearse::RankContext&, const rehearse::Parameters&) {},
                           .takes_arguments = true};

namespace rehearse::test {
namespace {

using sim::Scenario, sim::ScenarioOption, sim::Spelling;

constexpr int kDraws = 20;

class Options : public ::testing::Test {
 protected:
  std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_); }

  std::string one_of(const std::vector<std::string>& texts) { return texts[below(texts.size())]; }

  // A text that some row takes.
  std::string any_text() {
    const auto digits = std::to_string(random_() >> below(64));
    const std::vector<std::string> units = {"ns", "us", "ms", "s", "min", "KiB", "GB", "MB/s", "Gbit/s", "TFLOP/s"};
    switch (below(5)) {
      case 0:
        return digits;
      case 1:
        return "0." + digits.substr(0, 3);
      case 2:
        return digits.substr(0, 3) + one_of(units);
      case 3:
        return one_of(
            {"true", "false", "out/here", "a \"quoted\" \\ name", "optional", "2026-12-01", "1999-12-31T23:59:58Z"});
      default:
        return one_of({"crash rank=1 at=allreduce#12", "pause rank=0-1 label=\"a b\" p=0.5 for=5ms", "crash",
                       "pause for=5ms", "slow rank=1 by=3"});
    }
  }

  // Sets the row to a value that it takes, as a file spells it.
  void draw(const ScenarioOption& row, Scenario& scenario) {
    for (int attempt = 0; attempt < 10'000; ++attempt) {
      Scenario changed = scenario;
      const auto text = row.value.words.empty() ? any_text() : one_of(row.value.words);
      if (!row.value.set(changed, text, Spelling::file).empty()) continue;
      if (row.flag.name == "--schedule") take(one_strategy(*changed.world.schedule), changed.world);
      scenario = std::move(changed);
      return;
    }
    FAIL() << "no text fits [" << row.section << "] " << row.key;
  }

  // What a typed schedule says of the options that go with it.
  sim::Strategy one_strategy(Schedule schedule) {
    sim::Strategy strategy{.schedule = schedule, .preempt = below(2) == 0};
    if (below(2) == 0) strategy.patience = std::chrono::milliseconds(1 + below(20));
    if (schedule == Schedule::pct) strategy.pct = {.depth = 1 + static_cast<int>(below(9)), .steps = below(100)};
    return strategy;
  }

  static Scenario plain() {
    return sim::parse_scenario("program = \"optional\"\n[swarm]\nfamilies = [\"crash\", \"pause for=5ms\"]\n",
                               "a.toml");
  }

  std::string set_by_file(const ScenarioOption& row, const Scenario& scenario) const {
    const auto read = sim::parse_scenario(to_toml(scenario), "a.toml");
    EXPECT_EQ(row.value.print(read, Spelling::file), row.value.print(scenario, Spelling::file));
    return to_toml(read);
  }

  // `flags`: behind the command and the scenario.
  std::string set_by_flags(const std::vector<std::string>& flags) const {
    return to_toml(cli::scenario_of(parsed(flags)));
  }

  cli::Arguments parsed(const std::vector<std::string>& flags) const {
    write_file(folder_ / "a.toml", to_toml(plain()));
    const auto file = (folder_ / "a.toml").string();
    std::vector<const char*> words = {"job", "run", file.c_str()};
    for (const auto& flag : flags) words.push_back(flag.c_str());
    return cli::parse_arguments(static_cast<int>(words.size()), words.data());
  }

  static std::string set_by_variable(std::string_view variable, const std::string& value) {
    const auto environment =
        read_environment([&](const char* name) { return name == variable ? value.c_str() : nullptr; });
    Scenario scenario = plain();
    for (const auto& [row, text] : environment.given) row->value.set(scenario.world, text, Spelling::typed);
    return to_toml(scenario);
  }

  template <class Test>
  void for_each_row(const Test& test) {
    for (const auto& section : sim::scenario_sections()) {
      for (const auto& row : section.rows) {
        if (row.section == sim::kParametersSection) continue;
        SCOPED_TRACE("[" + std::string(row.section) + "] " + std::string(row.key) + std::string(row.flag.name));
        for (int draws = 0; draws < kDraws && !HasFatalFailure(); ++draws) test(row);
      }
    }
  }

  std::mt19937_64 random_{7};
  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(Options, EveryRow_PrintsTheSameScenarioHoweverItIsSet) {
  std::set<std::string_view> flags, variables;
  for_each_row([&](const ScenarioOption& row) {
    Scenario scenario = plain();
    if (row.key != "program") draw(row, scenario);
    const auto printed = to_toml(scenario);
    EXPECT_EQ(set_by_file(row, scenario), printed);
    const auto typed = row.value.print(scenario, Spelling::typed);
    if (typed.empty() || !row.flag.component.empty()) return;
    if (!row.variable.empty()) {
      EXPECT_EQ(set_by_variable(row.variable, typed.front()), printed);
      variables.insert(row.variable);
    }
    const bool is_bare = typed.front() == row.flag.bare;
    if (row.flag.name.empty() || (row.flag.value.empty() && !is_bare)) return;
    const auto flag = std::string(row.flag.name) + (is_bare ? "" : "=" + typed.front());
    EXPECT_EQ(set_by_flags({flag}), printed);
    flags.insert(row.flag.name);
    if (row.flag.place == 0) return;
    ASSERT_EQ(cli::options_given(parsed({flag})).size(), 1u);
    EXPECT_EQ(cli::options_given(parsed({flag})).front(),
              std::string(row.flag.name) + (is_bare ? "" : "=" + cli::shell_word(typed.front())));
  });
  EXPECT_EQ(flags, (std::set<std::string_view>{"--argument", "--check-buffers", "--check-sharing", "--checks", "--date",
                                               "--fault", "--output", "--ranks", "--schedule", "--seed", "--swarm"}));
  EXPECT_EQ(variables, (std::set<std::string_view>{"REHEARSE_PREEMPT", "REHEARSE_SCHEDULE", "REHEARSE_SEED"}));
}

// This program has no real mode and hence no such flags; their rows are those of every program.
TEST_F(Options, TypedTransport_AsksForARealRun) {
  const auto& row = *sim::find_scenario_flag("--with");
  Scenario typed = plain(), read = plain();
  EXPECT_EQ(row.value.set(typed, "gloo", Spelling::typed), "");
  EXPECT_EQ(row.value.set(read, "gloo", Spelling::file), "");
  EXPECT_EQ(typed.world.mode, Mode::real);
  EXPECT_EQ(read.world.mode, Mode::simulation);
  read.world.mode = Mode::real;
  EXPECT_EQ(to_toml(typed), to_toml(read));
}

TEST_F(Options, Place_IsThatOfOneFlag) {
  std::map<int, std::string_view> flags;
  for (const auto& section : sim::scenario_sections()) {
    for (const auto& row : section.rows) {
      if (row.flag.place == 0) continue;
      EXPECT_TRUE(flags.emplace(row.flag.place, row.flag.name).second) << row.flag.name;
    }
  }
}

TEST_F(Options, ReplayLine_RepeatsWhatWasGiven) {
  const std::vector<std::string> given = {"--schedule=pct:4:57+preempt", "--fault=pause rank=1 at=#3 for=5ms",
                                          "--seed=0x10", "--fault=crash rank=0 at=#1", "--output=out"};
  const auto line = cli::options_given(parsed(given));
  EXPECT_EQ(line, (std::vector<std::string>{"--seed=16", "--fault='pause rank=1 at=#3 for=5ms'",
                                            "--fault='crash rank=0 at=#1'", "--schedule=pct:4:57+preempt"}));
}

}  // namespace
}  // namespace rehearse::test
