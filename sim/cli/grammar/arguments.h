// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/job/runner.h>
#include <rehearse/sim/fault.h>
#include <rehearse/sim/world_options.h>

#include "cli/grammar/grammar.h"
#include "cli/grammar/seed_range.h"

namespace rehearse::cli {

// The default time limit for each seed of a sweep: a seed that never ends must not hold up the other seeds.
inline constexpr std::chrono::seconds kSeedTimeLimit{600};

// The parsed command line. Options that a command does not have keep their defaults.
struct Arguments {
  std::string self;                      // argv[0]
  std::vector<std::string> words;        // all of argv
  const CommandSpec* command = nullptr;  // one of grammar()
  std::string operand;                   // the scenario, the log, ...; empty: not given
  std::vector<std::string> operands;     // all operands, for a command that takes several
  std::optional<std::uint64_t> seed;
  std::optional<int> ranks;
  std::vector<Fault> faults;              // in addition to the scenario's
  std::optional<sim::Strategy> schedule;  // nothing: the scenario decides
  std::optional<CheckLevel> checks;       // nothing: the scenario decides
  bool check_buffers = false;
  bool check_sharing = false;
  bool real = false;
  std::optional<Transport> transport;  // for a real run; nothing: the scenario decides
  bool swarm = false;                  // each seed draws faults
  std::optional<SeedRange> seeds;
  std::optional<Shard> shard;                      // the part of the seeds; nothing: all seeds
  std::optional<int> jobs;                         // nothing: as many as the machine has processors
  std::optional<int> max_failures;                 // nothing: 1, or no limit with keep_going
  std::optional<std::chrono::seconds> time_limit;  // for a run or seed, in real time; nothing: none
  bool keep_going = false;
  std::string junit;                                   // a file; empty: none
  std::string output;                                  // empty: the scenario decides
  int check_determinism = 0;                           // the number of runs; 0: no comparison
  std::optional<double> tolerance;                     // for results, relative; nothing: by dtype and number of ranks
  std::optional<double> bucket_cap, first_bucket_cap;  // MiB
  std::string rules;                                   // one of rule_names()
  std::string model;                                   // one of an archive's models; empty: the only one
  std::string text_of, dot_of;                         // the name of a piece; empty: not given
  bool json = false;
  bool no_color = false;
  bool quiet = false;
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
