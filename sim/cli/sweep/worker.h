// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <rehearse_internal/sim/scenario.h>

#include "cli/grammar/arguments.h"

namespace rehearse::cli {

// What every worker of a sweep is told by being forked. Both outlive it.
struct SweepSetup {
  const Arguments& arguments;
  const sim::Scenario& scenario;
};

// Where the files of one seed go: a folder of its own in that of the sweep.
std::filesystem::path seed_folder(const sim::Scenario& scenario, std::uint64_t seed);

// What runs a failed seed again: its log, or, where faults come from the command line, the seed with these.
std::string replay_line(const Arguments& arguments, std::uint64_t seed, const std::filesystem::path& log);

// A worker answers each seed with this and, after it, as many bytes of the report as JSON (none: the run
// came to what was expected), of what went wrong while its files were written, and of the files that its ranks wrote
// elsewhere, each with a 0 behind it.
struct WorkerAnswer {
  std::uint64_t seed = 0;
  std::uint64_t identity = 0;
  double seconds = 0;
  std::uint64_t report_bytes = 0;
  std::uint64_t error_bytes = 0;
  std::uint64_t files_bytes = 0;
};

// The worker's ends of its pipes, and the file that its stdout and stderr are.
struct WorkerFiles {
  int seeds = -1;  // eight bytes each, as they lie in memory
  int answers = -1;
  int printed = -1;
};

// Runs the scenario with each seed that arrives, one world after another in this process, until there are no
// more; leaves the files of those that fail. What a program prints is kept in their output.txt and otherwise
// forgotten.
[[noreturn]] void work(const SweepSetup& setup, WorkerFiles files);

// Copies what lies in `printed` to the seed's output.txt and names that in the report; nothing when nothing
// was printed. Throws UsageError.
void keep_printed(int printed, const std::filesystem::path& folder, Report& report);

}  // namespace rehearse::cli
