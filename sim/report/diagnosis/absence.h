// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>
#include <rehearse_internal/comm/pending.h>
#include <rehearse_internal/job/run_record.h>

#include "report/ranks/rank_outcomes.h"

namespace rehearse::sim {

// Describes a call that some ranks made and others never did as a difference between the two: who made it and where,
// and what each other rank called last.
Difference absence_from(const comm::PendingGroup& group, const RunRecord& record, const RankOutcomes& ends);
Difference absence_from(const comm::PendingOperation& call, const RunRecord& record, const RankOutcomes& ends);

}  // namespace rehearse::sim
