// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/comm/pending.h>

#include "comm/work/rank_work.h"

namespace rehearse::comm {

// The work as reports list it, with what its match knows. Does not set the fields for sends.
PendingOperation pending_of(const RankWork& work, const PendingMatch& match);

}  // namespace rehearse::comm
