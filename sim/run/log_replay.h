// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include <rehearse/exec/oracle.h>
#include <rehearse_internal/sim/run_log.h>

namespace rehearse::sim {

// Has `run` run once more what a finished log holds, by the decisions of the log; it gives the report of that run,
// which is borrowed. The run of a log that ends where its run was interrupted is interrupted there, too. Returns "the
// replay differs from the log: ..."; nothing if it was the same run (ended_as_log() holds then), or was interrupted
// before it came to the log's end. `run` may throw ReplayError: the run then did not come to its end, and that is the
// other way.
std::string replay_log(const RunLog& log, const std::function<const Report&(Oracle& answers)>& run);

// Did a run of replay_log(), which is told by `report`, come to where its log ends?
bool ended_as_log(const RunLog& log, const Report& report);

}  // namespace rehearse::sim
