// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <iosfwd>
#include <string>

#include "cli/sweep/seed_result.h"

namespace rehearse::cli {

// A sweep as JUnit XML, as continuous integration shows it: one test suite named after the program, one case
// a seed, with the whole report of those that failed (a process that died is an error, anything else a
// failure).
void write_junit(std::ostream& out, const std::string& program, const SeedResults& results);

// Before the sweep: a wrong path must not cost a night. Throws UsageError where the file cannot be written; empty: none
// is asked for.
void require_junit(const std::string& file);

// Returns false, and says why, when it cannot be written.
bool leave_junit(const std::string& file, const std::string& program, const SeedResults& results);

}  // namespace rehearse::cli
