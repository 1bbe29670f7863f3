// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>
#include <rehearse_internal/comm/pending.h>
#include <rehearse_internal/job/run_record.h>

#include "report/ranks/rank_outcomes.h"

namespace rehearse::sim {

// For a call that some of its ranks never made: a difference whose first side is the ranks that made the call, with the
// call and its place. The other sides are the ranks that did not, with their last calls.
Difference absence_from(const comm::PendingGroup& group, const RunRecord& record, const RankOutcomes& ends);
Difference absence_from(const comm::PendingOperation& call, const RunRecord& record, const RankOutcomes& ends);

}  // namespace rehearse::sim
