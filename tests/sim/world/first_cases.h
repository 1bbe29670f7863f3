// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/sim/world.h>

// The bugs that people meet first, as they write them. The mistake is that of the rank in the middle (size / 2) of
// three or more. Outside of rehearse, whose frames are no user's.
namespace first_cases {

using rehearse::RankContext;

// It broadcasts where the others all-reduce.
void mismatched_collective(RankContext& ctx);

// It broadcasts from rank 1, the others from rank 0.
void wrong_root(RankContext& ctx);

// It expects three numbers from rank 0, which sends two, as each rank does to each.
void uneven_alltoall(RankContext& ctx);

// It returns after the first of two all-reduces.
void returns_early(RankContext& ctx);

// It sleeps for 45 minutes before it comes to an all-reduce; the others have patience for 30.
void comes_late(RankContext& ctx);

// It uses two groups in the other order.
void swaps_two_groups(RankContext& ctx);

}  // namespace first_cases
