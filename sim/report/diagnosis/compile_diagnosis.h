// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/job/verdict.h>

#include <rehearse_internal/job/run_record.h>
#include "report/ranks/cause_text.h"
#include "report/ranks/rank_outcomes.h"

namespace rehearse::sim {

// How compiled functions contributed to a run's end.

// The beginning of a headline, if compiling caused the end; otherwise empty. There are two forms. If ranks wait in a
// compiler collective, or if their compiler collectives do not match: "rank 1 compiles f (call 2: y is 4, guard y == 3
// of entry 0), rank 0 used compiled entry 0 in call 2 and is in allreduce #7 on group "world"; guard collectives would
// have made both compile; ", with the ranks that compile as a cause. If there is no such collective, but
// lone_compile_behind() finds a call: "rank 1 alone recompiled f in call 3: ...; ". Empty for all verdicts but
// DEADLOCK, TIMEOUT, LIVELOCK and MISMATCH.
CauseText compile_cause(const RunRecord& record, const RankOutcomes& ends, Verdict verdict);

// One line for each call in which some ranks compiled a function and others did not. Leaves out functions with compiler
// or guard collectives.
std::vector<std::string> compile_remarks(const RunRecord& record, const Places& places);

// One line for each two graphs of a function that ranks compiled under equal guards. Ranks that sent or received
// messages may be stages of a pipeline. They are compared only if they have said that they compile together.
std::vector<std::string> graph_remarks(const RunRecord& record, const Places& places);

}  // namespace rehearse::sim
