// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse_internal/job/run_record.h>
#include "report/ranks/places.h"

namespace rehearse::sim {

// "rank 2 unwinds from 'disk is full', thrown at train.cpp:69 in save; ": of ranks that were in destructors when the
// world ended. What they called there is only what came of their exceptions. Empty where there are none.
std::string unwinding_first(const RunRecord& record, const Places& places);

}  // namespace rehearse::sim
