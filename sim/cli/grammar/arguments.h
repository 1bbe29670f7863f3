// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/grammar/grammar.h"
#include "cli/grammar/seed_range.h"
#include "scenario/scenario_keys.h"

namespace rehearse::cli {

// The default time limit for each seed of a sweep: a seed that never ends must not hold up the other seeds.
inline constexpr std::chrono::seconds kSeedTimeLimit{600};

// An option of the scenario with the text of its value, in the spelling of replay lines.
struct GivenOption {
  const sim::ScenarioOption* option;
  std::string text;
};

// The parsed command line. Options that a command does not have keep their defaults.
struct Arguments {
  std::string self;                      // argv[0]
  std::vector<std::string> words;        // all of argv
  const CommandSpec* command = nullptr;  // one of grammar()
  std::string operand;                   // the scenario, the log, ...; empty: not given
  std::vector<std::string> operands;     // all operands, for a command that takes several
  std::vector<GivenOption> given;        // in the order of replay lines
  std::optional<SeedRange> seeds;
  std::optional<Shard> shard;                      // the part of the seeds; nothing: all seeds
  std::optional<int> jobs;                         // nothing: as many as the machine has processors
  std::optional<int> max_failures;                 // nothing: 1, or no limit with keep_going
  std::optional<std::chrono::seconds> time_limit;  // for a run or seed, in real time; nothing: none
  bool keep_going = false;
  std::string junit;                                   // a file; empty: none
  std::string page;                                    // a file; empty: beside the input
  int check_determinism = 0;                           // the number of runs; 0: no comparison
  std::optional<double> tolerance;                     // for results, relative; nothing: by dtype and number of ranks
  std::optional<double> bucket_cap, first_bucket_cap;  // MiB
  std::string rules = "default";                       // or "pytorch", "ddp"
  std::string model;                                   // one of an archive's models; empty: the only one
  std::string text_of, dot_of;                         // the name of a piece; empty: not given
  bool json = false;
  bool no_color = false;
  bool quiet = false;

  // `flag`: of an option of the scenario, "--seed".
  bool gives(std::string_view flag) const;
  // As if the user had given it. Replaces an earlier value, unless the option may be repeated. Returns what an error
  // adds to "--seed is "x""; empty: nothing is wrong.
  std::string give(const sim::ScenarioOption& option, std::string_view text);
  void take_back(std::string_view flag);
};

// The user asked for --help or --version: the command prints the text and exits with 0.
struct HelpAsked {
  std::string text;
};

// Throws UsageError, or HelpAsked.
Arguments parse_arguments(int argc, const char* const* argv);

// The command's name in texts: the last part of argv[0].
std::string name_of(const std::string& self);

}  // namespace rehearse::cli
