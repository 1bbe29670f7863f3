// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse_internal/job/run_record.h>
#include "report/ranks/places.h"

namespace rehearse::sim {

// What is worth a word whatever the verdict: calls for whose end nobody asked, functions that not all ranks recompiled.
// What ranks of a failed run left behind. `headline`: its facts are not repeated.
std::vector<std::string> remarks_of(const RunRecord& record, const Places& places, const std::string& headline,
                                    bool failed);

}  // namespace rehearse::sim
