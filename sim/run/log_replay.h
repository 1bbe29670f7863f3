// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include <rehearse/exec/oracle.h>
#include <rehearse/job/report.h>
#include <rehearse_internal/sim/run_log.h>

namespace rehearse::sim {

// Has `run` run once more what a finished log holds, by the decisions of the log; it gives the report of that run,
// which is borrowed. Returns "the replay took another way than the log: ..." or, where it was the same run or was
// interrupted, nothing. `run` may throw ReplayError: the run then did not come to its end, and that is the other way.
std::string replay_log(const RunLog& log, const std::function<const Report&(Oracle& answers)>& run);

}  // namespace rehearse::sim
