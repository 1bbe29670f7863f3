// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/job/runner.h>
#include <rehearse/sim/fault.h>

#include "cli/grammar/grammar.h"
#include "cli/grammar/seed_range.h"

namespace rehearse::cli {

// The default limit of each seed of a sweep: a seed that does not end must not hold up the others forever.
inline constexpr std::chrono::seconds kSeedTimeLimit{600};

// What the command line says. Options that a command does not have keep their defaults.
struct Arguments {
  std::string self;                      // argv[0]
  std::vector<std::string> words;        // all of argv
  const CommandSpec* command = nullptr;  // one of grammar()
  std::string operand;                   // the scenario, the log, ...; empty: left out
  std::vector<std::string> operands;     // all of them, of a command that takes several
  std::optional<std::uint64_t> seed;
  std::optional<int> ranks;
  std::vector<Fault> faults;  // beside the scenario's
  bool check_buffers = false;
  bool check_sharing = false;
  bool real = false;
  std::optional<Carrier> carrier;  // of a real run; nothing: as the scenario says
  bool swarm = false;              // faults are drawn
  std::optional<SeedRange> seeds;
  std::optional<Shard> shard;                      // of the seeds; nothing: all of them
  std::optional<int> jobs;                         // nothing: as many as there are processors
  std::optional<int> max_failures;                 // nothing: 1, or with keep_going any number
  std::optional<std::chrono::seconds> time_limit;  // of a run or seed, real time; nothing: none
  bool keep_going = false;
  std::string junit;   // a file; empty: none
  std::string output;  // empty: as the scenario says
  bool check_determinism = false;
  std::optional<double> tolerance;                     // of results, relative; nothing: by dtype and number of ranks
  std::optional<double> bucket_cap, first_bucket_cap;  // MiB
  std::string rules;                                   // one of rule_names()
  std::string model;                                   // of an archive; empty: the only one
  std::string text_of, dot_of;                         // a piece; empty: none
  bool json = false;
  bool no_color = false;
  bool quiet = false;
};

// --help or --version was asked for: the command prints the text and exits with 0.
struct HelpAsked {
  std::string text;
};

// Throws UsageError, or HelpAsked.
Arguments parse_arguments(int argc, const char* const* argv);

// The last part of argv[0]: what the command is called in texts.
std::string name_of(const std::string& self);

}  // namespace rehearse::cli
