// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>

#include "report/writers/json.h"

namespace rehearse::sim {

// False if nobody measured the run: its process died, a replay gave it up, or only dumps describe it.
bool is_measured(const Report& report);

// True if nothing went wrong as far as is known, but some rank of the job left no dump.
bool is_partial(const Report& report);

// Like report_as_json(), but without the numbers that nobody measured, which are zeros there.
Json measured_json(const Report& report);

}  // namespace rehearse::sim
