// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/job/report.h>
#include <rehearse_internal/sim/scenario.h>

#include "cli/terminal/console.h"

// A scenario that expects a verdict is a test. These functions compare a run's verdict with the scenario's expectation
// and choose the exit code, both for a run that ended normally and for a run whose process died.
namespace rehearse::cli {

// True if the run ended as its scenario expects. Unless the scenario expects OK or FAULT NOT FIRED, every fault that
// must fire must also have fired.
bool came_as_expected(const sim::Scenario& scenario, const Report& report);

// The text for a run that did not end as expected: "expected DEADLOCK: the run ended as OK".
std::string expectation(const sim::Scenario& scenario, const Report& report);

// 0 if the run ended as its scenario expects; otherwise the verdict's exit code. kExitDisagree if that code would be 0,
// or if the only problem is a fault that did not fire.
int exit_code_of(const sim::Scenario& scenario, const Report& report);

// Prints on stderr what the scenario expected in vain. Prints nothing if it expects OK, because then the report says
// enough.
void tell_unexpected(const sim::Scenario& scenario, const Report& report);

// Prints the report as the last result, and what the scenario expected in vain. Returns the exit code. `problem`: why
// files of the run are missing; then a run that ended as expected does not return 0. Empty: no file is missing.
int conclude(const sim::Scenario& scenario, const Report& report, Console& console, const std::string& problem = "");

}  // namespace rehearse::cli
