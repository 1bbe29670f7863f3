// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/job/run_record.h>
#include "report/ranks/cause_text.h"
#include "report/ranks/places.h"

namespace rehearse::sim {

// Names the first two exceptions that were unwinding ranks when the world ended, or when a destructor threw another
// exception: "rank 2 was unwinding an exception, 'disk is full', thrown at train.cpp:69 in save; ". Leaves out
// exceptions of calls that failed and of the world's end. The report shows such a rank in a call that a destructor
// made, and the named exception is the reason why the destructor ran. Empty if there are none.
CauseText unwinding_first(const RunRecord& record, const Places& places);

}  // namespace rehearse::sim
