// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/comm/pending.h>

#include "comm/work/rank_work.h"

namespace rehearse::comm {

// Describes a work for reports: an incomplete one, or one that has timed out. `match`: the match that has the work.
// Does not set the fields that only sends have.
PendingOperation pending_of(const RankWork& work, const PendingMatch& match);

}  // namespace rehearse::comm
