// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/launch/processes.h"

namespace rehearse::cli {

// Set in the environment of the processes that launch_ranks() starts. Such a process writes its files, but prints
// neither banner nor report.
inline constexpr const char* kLaunchedByUs = "REHEARSE_LAUNCHED";

bool is_launched_by_us();

struct RankLaunch {
  std::vector<std::string> words;  // the command line of each process
  int ranks = 1;
  std::filesystem::path folder;  // contains rank-0, rank-1, ...; output.txt in each receives what that process prints
  std::optional<std::chrono::seconds> time_limit;
};

struct RankEnds {
  std::vector<ProcessEnd> ranks;
  bool interrupted = false;  // by a signal from outside
  bool overdue = false;
};

// Starts a process for each rank on this host and waits until all have ended. Shows what they print, each line after
// "[rank]". This process serves the store through which the ranks find each other. If one process ends badly, the other
// processes have 30 seconds to report that. Then launch_ranks() asks them to end. After an interrupt, or two seconds
// after the time limit, it asks them without these 30 seconds. A second request follows 10 seconds later, or after a
// second interrupt: a process that still runs then reports where its rank is, and ends without waiting for anything.
// Finally, launch_ranks() kills the processes that are left. It kills them at once if a signal such as SIGSTOP has
// stopped all of them, because they cannot answer. Throws std::system_error if the store or a process cannot be
// started, and OutputError if an output.txt cannot be written.
RankEnds launch_ranks(const RankLaunch& launch);

// Starts one process and waits for its end. Passes the first two interrupts of this process on to the new one. The
// output of the new process goes only to `start.printed`. Throws std::system_error, and OutputError for that file.
ProcessEnd run_alone(const ProcessStart& start);

}  // namespace rehearse::cli
