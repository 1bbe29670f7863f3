// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <c10/util/FunctionRef.h>

#include <rehearse/job/report.h>
#include <rehearse_internal/comm/mismatch.h>

namespace rehearse::sim {

// A mismatch in the form that reports have. `where` returns the place of a side's call.
Difference difference_of(const comm::Mismatch& mismatch,
                         c10::function_ref<Place(const comm::Mismatch::Side& side)> where);

}  // namespace rehearse::sim
