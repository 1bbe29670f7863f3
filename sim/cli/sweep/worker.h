// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

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

// The header of a worker's answer to a seed. Four parts follow it, with the lengths that it gives: the report as JSON
// (no bytes: the run ended as expected); the errors that occurred while files were written; the names of the files that
// ranks wrote outside the scratch folders; and the remarks of a run that ended as expected. Each name and each remark
// is followed by a zero byte.
struct WorkerAnswer {
  std::uint64_t seed = 0;
  std::uint64_t identity = 0;
  double seconds = 0;
  std::uint64_t report_bytes = 0;
  std::uint64_t error_bytes = 0;
  std::uint64_t files_bytes = 0;
  std::uint64_t remarks_bytes = 0;
};

// The worker's ends of its pipes, and the file that serves as its stdout and stderr.
struct WorkerFiles {
  int seeds = -1;  // eight bytes for each seed, in this machine's byte order
  int answers = -1;
  int printed = -1;
};

// Runs the scenario with each seed that arrives, one world after another in this process, until no more seeds come. If
// a seed fails, leaves its files; output.txt among them has what the program printed.
[[noreturn]] void work(const SweepSetup& setup, WorkerFiles files);

// Copies the content of `printed` to the seed's output.txt, and adds output.txt to the report's files. Does nothing if
// nothing was printed. Throws OutputError.
void keep_printed(int printed, const std::filesystem::path& folder, Report& report);

}  // namespace rehearse::cli
