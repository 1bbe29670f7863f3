// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>

#include "cli/grammar/arguments.h"

namespace rehearse::cli {

// What the operands tell: the report in a run log or report.json, or what a flight recorder's dumps, several files or a
// folder of them, say of their job. Throws UsageError, InputError and RunLogError.
Report read_report(const Arguments& arguments);

}  // namespace rehearse::cli
