// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/job/cause.h>
#include <rehearse/job/verdict.h>
#include <rehearse_internal/job/run_record.h>

#include "report/ranks/places.h"

namespace rehearse::sim {

struct CallDrift {
  Cause cause;
  std::string text;  // "rank 2 is out of step from #5 of group "world" on: it left out the allreduce at ..."
};

// Looks at the groups whose calls were not matched. Compares calls by the lines that made them, and finds ranks whose
// calls, from some call on, equal the others' calls one or a few places later or earlier. In such a run, calls of one
// kind were matched although they did not belong together, until a call failed. Leaves out groups on whose calls
// threads race. Empty if the verdict does not concern calls (see calls_up_to_the_failure()), or if call sites were not
// captured.
std::vector<CallDrift> drifts_of(const RunRecord& record, Verdict verdict, const Places& places);

}  // namespace rehearse::sim
