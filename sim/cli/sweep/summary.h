// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "cli/grammar/seed_range.h"
#include "cli/sweep/seed_result.h"

namespace rehearse::cli {

// The findings of a sweep.
struct SweepOutcome {
  std::string program;
  Verdict expect = Verdict::ok;  // for each seed
  SeedRange asked;
  SeedResults results;
  bool interrupted = false;
  bool stopped = false;  // enough failures were found, so later seeds did not run
};

// For people: the verdict, each bug with its seeds, and finally the line that replays the first failing seed. If only
// one seed failed, the text has the whole report of that failure instead.
std::string to_text(const SweepOutcome& outcome, bool color);

std::string to_json(const SweepOutcome& outcome);

// If the sweep was interrupted: the exit code of INTERRUPTED. Otherwise, if a seed failed: the exit code of the lowest
// failing seed's verdict, or kExitDisagree if that verdict is OK or the expected one. Otherwise 0.
int exit_code(const SweepOutcome& outcome);

}  // namespace rehearse::cli
