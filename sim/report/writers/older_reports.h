// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>

namespace rehearse::sim {

// Fills in the fields that reports of older versions do not have: `causes`, and `gave_up_on` and `lost` of the lines.
// Takes the facts from the headline and from the texts of errors, as these versions wrote them.
void add_facts_of_older_versions(Report& report);

}  // namespace rehearse::sim
