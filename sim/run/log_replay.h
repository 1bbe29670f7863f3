// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include <rehearse/exec/oracle.h>
#include <rehearse_internal/sim/run_log.h>

namespace rehearse::sim {

// Repeats the run of a finished log with the log's decisions. `run` carries out the replay and returns its report,
// which must stay valid until this function returns. If the logged run was interrupted, the replay is interrupted at
// the same point. Returns an empty text if the replay was the same run (then ended_as_log() is true), or if somebody
// interrupted the replay earlier. Otherwise, and if `run` throws ReplayError, returns "the replay differs from the log:
// ...".
std::string replay_log(const RunLog& log, const std::function<const Report&(Oracle& answers)>& run);

// True if the replay that `report` describes reached the point at which the log ends.
bool ended_as_log(const RunLog& log, const Report& report);

}  // namespace rehearse::sim
