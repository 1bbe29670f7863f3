// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>

#include "report/writers/json.h"

namespace rehearse::sim {

// False if nobody measured the run: its process did not survive it, a replay gave it up, or it is known by dumps alone.
bool is_measured(const Report& report);

// Nothing went wrong as far as is known, but some rank of the job left no dump.
bool is_partial(const Report& report);

// As report_as_json(), without the numbers that nobody measured, which are zeros there.
Json measured_json(const Report& report);

}  // namespace rehearse::sim
