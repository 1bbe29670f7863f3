// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "cli/grammar/seed_range.h"
#include "cli/sweep/seed_result.h"

namespace rehearse::cli {

// What a sweep found.
struct SweepOutcome {
  std::string program;
  Verdict expect = Verdict::ok;  // of each seed
  SeedRange asked;
  SeedResults results;
  bool interrupted = false;
  bool stopped = false;  // as many failures as were wanted: the seeds after them were not run
};

// For people: the verdict, each bug with its seeds, and last the line that replays the first failing seed. A
// sweep that stopped at its first failure prints that one's whole report.
std::string to_text(const SweepOutcome& outcome, bool color);

// The same for programs.
std::string to_json(const SweepOutcome& outcome);

// That of an interrupted sweep; else that of the lowest failing seed; 0 when none failed.
int exit_code(const SweepOutcome& outcome);

}  // namespace rehearse::cli
