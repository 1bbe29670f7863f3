// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include <rehearse/job/report.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/job/run_record.h>

#include "report/ranks/places.h"

namespace rehearse::sim {

// Where the stacks of the culprits and of other ranks part. nullopt if the report has no such ranks, if their stacks
// are not known, or if it would only repeat the places of their calls.
std::optional<Parting> parting_of(const Report& report, const RunRecord& record, const Places& places);

// The lines through which exceptions left the code of ranks, with their source. Empty without an interpreter. The same
// lines appear once, with all ranks.
std::vector<Traceback> tracebacks_of(const exec::RunOutcome& outcome, const Places& places);

}  // namespace rehearse::sim
