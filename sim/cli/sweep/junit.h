// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <iosfwd>
#include <string>

#include "cli/sweep/seed_result.h"

namespace rehearse::cli {

// Writes a sweep as JUnit XML, for continuous integration: one test suite with the program's name, one case for each
// seed. A failed seed has its whole report. A process that died is an error; everything else is a failure.
void write_junit(std::ostream& out, const std::string& program, const SeedResults& results);

// Call this before the sweep, so that a wrong path does not cost the results of a long sweep. Throws UsageError if the
// file cannot be written. `file` is empty if nobody asked for one.
void require_junit(const std::string& file);

// Returns false, and prints why, if the file cannot be written.
bool leave_junit(const std::string& file, const std::string& program, const SeedResults& results);

}  // namespace rehearse::cli
