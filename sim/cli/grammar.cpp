// SPDX-License-Identifier: BSD-3-Clause
#include "grammar.h"

#include <algorithm>

namespace rehearse::cli {
namespace {

constexpr OptionSpec kSeed{"--seed", "N", "7", "instead of the scenario's [world] seed"};
constexpr OptionSpec kRanks{"--ranks", "N", "8", "instead of the scenario's [world] ranks"};
constexpr OptionSpec kOutput{"--output", "DIR", "out", "instead of the scenario's [output] directory"};
constexpr OptionSpec kCheckDeterminism{"--check-determinism", "", "", "run twice and compare"};
constexpr OptionSpec kQuiet{"--quiet", "", "", "no banner and no progress"};
constexpr OptionSpec kJson{"--json", "", "",
                           "JSON on stdout and nothing else there; what the program prints goes to stderr"};
constexpr OptionSpec kNoColor{"--no-color", "", "",
                              "no colours on a terminal; so does the environment's NO_COLOR"};

constexpr OperandSpec kScenario{"SCENARIO", "which scenario?", "a scenario file (TOML)"};

std::vector<CommandSpec> all_commands() {
  return {
      {Command::run,
       "run",
       "Runs a scenario once, prints the report, and leaves report, trace and decision log.",
       kScenario,
       {kSeed, kRanks, kCheckDeterminism, kOutput, kQuiet, kJson, kNoColor},
       {"run train.toml", "run train.toml --seed=7 --ranks=16 --output=out",
        "run train.toml --json | jq .verdict"}},
      {Command::replay,
       "replay",
       "Runs again what a decision log holds, decision by decision, and says whether it is the same run. "
       "Writes no "
       "files.",
       {"LOG", "which decision log?", "a decision log (run.rlog)"},
       {kQuiet, kJson, kNoColor},
       {"replay rehearse-out/train/run.rlog"}},
      {Command::explain,
       "explain",
       "Prints a report again, without running anything.",
       {"LOG", "which decision log?", "a decision log (run.rlog), or a report.json"},
       {kJson, kNoColor},
       {"explain rehearse-out/train/run.rlog", "explain rehearse-out/train/report.json"}},
      {Command::list,
       "list",
       "Prints the programs of this executable and what a scenario's [parameters] may say for each.",
       {"PROGRAM", "", "this one only"},
       {kJson},
       {"list", "list train"}},
  };
}

}  // namespace

const std::vector<CommandSpec>& grammar() {
  static const std::vector<CommandSpec> commands = all_commands();
  return commands;
}

const CommandSpec* find_command(std::string_view name) {
  const auto found =
      std::find_if(grammar().begin(), grammar().end(), [&](const auto& spec) { return spec.name == name; });
  return found == grammar().end() ? nullptr : &*found;
}

const OptionSpec* find_option(const CommandSpec& command, std::string_view name) {
  const auto found = std::find_if(command.options.begin(), command.options.end(),
                                  [&](const auto& spec) { return spec.name == name; });
  return found == command.options.end() ? nullptr : &*found;
}

}  // namespace rehearse::cli
