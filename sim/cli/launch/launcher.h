// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/launch/processes.h"

namespace rehearse::cli {

// Set in the environment of processes that launch_ranks() starts: they leave files and print nothing of their own.
inline constexpr const char* kLaunchedByUs = "REHEARSE_LAUNCHED";

bool is_launched_by_us();

struct RankLaunch {
  std::vector<std::string> words;  // the command line of each
  int ranks = 1;
  std::filesystem::path folder;  // has rank-0, rank-1, ...: what each prints goes to output.txt there
  std::optional<std::chrono::seconds> time_limit;
};

struct RankEnds {
  std::vector<ProcessEnd> ranks;
  bool interrupted = false;  // from outside
  bool overdue = false;
};

// Where rank's files are, of a run whose folder that is.
std::filesystem::path rank_folder(const std::filesystem::path& folder, int rank);

// Takes away what an earlier run left in folders of ranks. Throws UsageError.
void clear_rank_folders(const std::filesystem::path& folder);

// Starts a process for each rank on this host and waits until all have ended, showing what they print, each line behind
// "[rank]". They meet at a store that this process serves. When one ends badly the others have kGrace to tell of it,
// then they are asked to end, then killed; so it is with an interrupt, and past the time limit. A second
// interrupt ends them at once. Throws std::system_error where they cannot be started.
RankEnds launch_ranks(const RankLaunch& launch);

// Starts one process and waits for its end; the first two interrupts of this one are passed on to it. What it prints is
// kept, and not shown. Throws as launch_ranks().
ProcessEnd run_alone(const ProcessStart& start);

}  // namespace rehearse::cli
