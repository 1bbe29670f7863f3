// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse_internal/job/run_record.h>
#include "report/ranks/places.h"

namespace rehearse::sim {

// Remarks for any verdict: calls for whose end nobody waited, functions that only some ranks recompiled, and what the
// ranks of a failed run left behind. Does not repeat facts of `headline`.
std::vector<std::string> remarks_of(const RunRecord& record, const Places& places, const std::string& headline,
                                    bool failed);

}  // namespace rehearse::sim
