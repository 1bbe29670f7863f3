// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <rehearse/job/report.h>
#include <rehearse_internal/job/run_record.h>

#include "report/ranks/places.h"

namespace rehearse::sim {

// Finds the source lines that some ranks of a group executed more often than others to call the group's collectives.
// Leaves out lines from which no rank called more than once. The lines are in the order of their first calls. Empty if
// call sites were not captured, or if the run failed for a reason other than its calls (see calls_up_to_the_failure()).
std::vector<CallCounts> lines_called_unequally(const RunRecord& record, Verdict verdict, const Places& places);

// Looks at the groups whose calls were not matched. Lists the first collectives, at most three, that ranks called from
// different places, up to the collective that failed. Lists each combination of places only once. Empty if the verdict
// does not concern calls (see calls_up_to_the_failure()), or if call sites were not captured.
std::vector<CallPlaces> calls_from_different_places(const RunRecord& record, Verdict verdict, const Places& places);

// For each name of a group whose calls were not matched, the last sequence number to look at. Empty for mismatches of
// sends and receives or of new_group(). Also empty for verdicts that do not concern calls, unless the first failure
// follows_a_timeout() of a call.
using CallsUpTo = std::map<std::string, std::uint64_t>;
CallsUpTo calls_up_to_the_failure(const RunRecord& record, Verdict verdict);

}  // namespace rehearse::sim
