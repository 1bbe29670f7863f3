// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>

#include "cli/grammar/arguments.h"

namespace rehearse::cli {

// Reads the report that the operands name: a run log, a report.json, or the flight recorder dumps of a job (one
// or more files, or a folder). Throws UsageError, InputError and RunLogError.
Report read_report(const Arguments& arguments);

}  // namespace rehearse::cli
