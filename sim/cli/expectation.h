// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/job/report.h>
#include <rehearse_internal/sim/scenario.h>

#include "cli/terminal/console.h"

// A scenario that expects a verdict is a test. Here, and nowhere else, a verdict becomes an exit code by what was
// expected: of a run that came to its end, and of one that its process did not survive.
namespace rehearse::cli {

// Has a run come to what its scenario expects, and has every fault taken place that must?
bool came_as_expected(const sim::Scenario& scenario, const Report& report);

// "expected DEADLOCK: the run ended as OK": of one that has not.
std::string expectation(const sim::Scenario& scenario, const Report& report);

// 0 if the run came to what its scenario expects, else the verdict's exit code; kExitDisagree where that would be 0, or
// where only a fault did not fire.
int exit_code_of(const sim::Scenario& scenario, const Report& report);

// Says on stderr what a scenario expected in vain. Nothing if it expects OK: then the report says enough.
void tell_unexpected(const sim::Scenario& scenario, const Report& report);

// Prints the report as the last result, and what was expected in vain; returns the exit code. `problem`: why files of
// the run are missing, which costs a run that came as expected its 0; empty: none are.
int conclude(const sim::Scenario& scenario, const Report& report, Console& console, const std::string& problem = "");

}  // namespace rehearse::cli
