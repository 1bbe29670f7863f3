// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include <rehearse_internal/job/run_record.h>

#include "process/check/messages.h"

namespace rehearse::real {

// Describes the exception that is being handled. `of_communication`: a call to c10d has failed before, and may be the
// cause. Must be called in a catch block.
RankEnded ended_by_exception(bool of_communication, VirtualTime at);

// Enters the outcome of a job into `record`: the ends of all ranks. Keeps this rank's own exception as it was thrown,
// unless the coordinator itself decided that the rank has failed, or knows for which ranks a call waited in vain.
void note_outcome(const JobOutcome& job_outcome, const std::optional<exec::RankFailure>& own, VirtualTime now,
                  RunRecord& record);

}  // namespace rehearse::real
