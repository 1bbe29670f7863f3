// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <iosfwd>
#include <string>

#include "cli/validate/comparison.h"
#include "report/writers/json.h"

namespace rehearse::cli {

// Both runs side by side with their differences, for people. Ends with a line end.
std::string validation_text(const ModeRun& one, const ModeRun& other, const Comparison& comparison);

// The same as JSON: {"rehearse_validation": 1, "agree": true, "runs": [...], ...}.
std::string validation_json(const ModeRun& one, const ModeRun& other, const Comparison& comparison);

// Writes both runs as one page. `runs` holds their data (stored_page_run()) with their names.
void write_validation_page(std::ostream& out, const ModeRun& one, const ModeRun& other, const Comparison& comparison,
                           const sim::Json& runs);

}  // namespace rehearse::cli
