// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>
#include <rehearse_internal/comm/pending.h>
#include <rehearse_internal/job/run_record.h>

#include "report/ranks/rank_outcomes.h"

namespace rehearse::sim {

// Describes a call that some ranks of its group never made. The first side of the difference has the ranks that made
// the call, with the call and its place. The other sides have the ranks that did not make the call, with their last
// calls.
Difference absence_from(const comm::PendingGroup& group, const RunRecord& record, const RankOutcomes& ends);
Difference absence_from(const comm::PendingOperation& call, const RunRecord& record, const RankOutcomes& ends);

}  // namespace rehearse::sim
