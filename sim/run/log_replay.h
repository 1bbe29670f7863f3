// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include <rehearse/exec/oracle.h>
#include <rehearse_internal/sim/run_log.h>

namespace rehearse::sim {

// Repeats the run of a finished log by the log's decisions. `run` carries out the run and returns its report, which
// this function only borrows. If the logged run was interrupted, this one is interrupted at the same point. Returns
// nothing if the run was the same (then ended_as_log() holds), or if it was interrupted before the log's end; otherwise
// "the replay differs from the log: ...". If `run` throws ReplayError, the run counts as different.
std::string replay_log(const RunLog& log, const std::function<const Report&(Oracle& answers)>& run);

// True if the run that replay_log() made, described by `report`, reached the point at which its log ends.
bool ended_as_log(const RunLog& log, const Report& report);

}  // namespace rehearse::sim
