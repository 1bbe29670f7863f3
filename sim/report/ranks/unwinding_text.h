// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/job/run_record.h>
#include "report/ranks/cause_text.h"
#include "report/ranks/places.h"

namespace rehearse::sim {

// Names exceptions of ranks that were in destructors when the world ended: "rank 2 was unwinding an exception, 'disk is
// full', thrown at train.cpp:69 in save; ". The report shows such a rank in a call that a destructor made, and the
// exception is the reason why the destructor ran. Empty if there are none.
CauseText unwinding_first(const RunRecord& record, const Places& places);

}  // namespace rehearse::sim
