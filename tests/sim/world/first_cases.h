// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/sim/world.h>

// The most common bugs, as people write them. The programs need at least three ranks. The rank in the middle (size / 2)
// makes the mistake; the comments below call it "the rank". The programs are outside namespace rehearse, because
// without line tables, reports take code of that namespace for library code.
namespace first_cases {

using rehearse::RankContext;

// The rank broadcasts where the others all-reduce.
void mismatched_collective(RankContext& ctx);

// The rank broadcasts from rank 1, the others from rank 0.
void wrong_root(RankContext& ctx);

// Each rank sends two numbers to each rank, but the rank expects three numbers from rank 0.
void uneven_alltoall(RankContext& ctx);

// The rank returns after the first of two all-reduces.
void returns_early(RankContext& ctx);

// The rank sleeps for 45 minutes before an all-reduce; the others' timeout is 30 minutes.
void comes_late(RankContext& ctx);

// The rank uses two groups in another order than the other ranks.
void swaps_two_groups(RankContext& ctx);

}  // namespace first_cases
