// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <rehearse_internal/sim/scenario.h>

#include "cli/grammar/arguments.h"

namespace rehearse::cli {

// The objects that every worker of a sweep inherits by fork. Both must outlive the workers.
struct SweepSetup {
  const Arguments& arguments;
  const sim::Scenario& scenario;
  sim::ProbedSteps probed;
};

std::filesystem::path seed_folder(const sim::Scenario& scenario, std::uint64_t seed);

// The command that runs a failed seed again: it replays the log or, if the command line gave faults or --swarm, repeats
// the seed with them and with its strategy. `world`: how the seed ran.
std::string replay_line(Arguments arguments, const WorldOptions& world, const std::filesystem::path& log);

// A worker's answer to a seed. In the pipe, it follows its length.
struct WorkerAnswer {
  std::uint64_t seed = 0;
  std::uint64_t identity = 0;
  double seconds = 0;
  std::string report;                // as JSON; empty: the run ended as expected
  std::string error;                 // what went wrong while files were written
  std::vector<std::string> files;    // that ranks wrote outside the scratch folders
  std::vector<std::string> remarks;  // of a run that ended as expected
};

template <class Archive>
void fields(Archive& archive, WorkerAnswer& answer) {
  archive(answer.seed, answer.identity, answer.seconds, answer.report, answer.error, answer.files, answer.remarks);
}

// The worker's ends of its pipes, and the file that serves as its stdout and stderr.
struct WorkerFiles {
  int seeds = -1;    // eight bytes for each seed, in this machine's byte order
  int answers = -1;  // see WorkerAnswer
  int printed = -1;
};

// Runs the scenario with each seed that arrives, one world after another in this process, until no more seeds come. If
// a seed fails, leaves its files; output.txt among them has what the program printed.
[[noreturn]] void work(const SweepSetup& setup, WorkerFiles files);

// Copies the content of `printed` to the seed's output.txt, and adds output.txt to the report's files. Does nothing if
// nothing was printed. Throws OutputError.
void keep_printed(int printed, const std::filesystem::path& folder, Report& report);

}  // namespace rehearse::cli
