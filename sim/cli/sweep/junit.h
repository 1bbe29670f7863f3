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

}  // namespace rehearse::cli
