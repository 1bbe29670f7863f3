// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>

#include "report/writers/json.h"

namespace rehearse::sim {

// The report as data, for files that hold a report and more. to_json() prints it.
Json report_as_json(const Report& report);

}  // namespace rehearse::sim
