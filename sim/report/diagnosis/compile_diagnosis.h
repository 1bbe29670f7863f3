// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/job/verdict.h>

#include <rehearse_internal/job/run_record.h>
#include "report/ranks/rank_outcomes.h"

namespace rehearse::sim {

// What compiled functions have to do with a run's end.

// "rank 1 compiles f (call 2: y is 4, guard y == 3 of entry 0), rank 0 hit entry 0 in call 2 and is in allreduce #7 on
// group "world"; guard collectives would have made both compile; ": of the first group that waits for a compilation of
// ranks that did not come, or in which different ones met. "rank 1 alone recompiled f in call 3: ...; ": where ranks do
// not meet and one compiled alone, which is behind the end. Empty where the verdict is none of waits and mismatches.
std::string compile_cause(const RunRecord& record, const RankOutcomes& ends, Verdict verdict);

// One line for each function and call in which some ranks compiled and others did not.
std::vector<std::string> compile_remarks(const RunRecord& record, const Places& places);

}  // namespace rehearse::sim
