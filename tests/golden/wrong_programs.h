// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/sim/world.h>

namespace wrong_programs {

using rehearse::RankContext;

// Small programs with one mistake each, as users write them: bodies of whole worlds. In a file of their own, because the
// reports in the golden files name its lines; outside of rehearse, whose frames are no user's.

// Rank 1 sleeps longer than the others have patience.
void oversleeps(RankContext& ctx);

// Rank 1 sends to a rank that the group does not have.
void sends_to_nobody(RankContext& ctx);

}  // namespace wrong_programs
