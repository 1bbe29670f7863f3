// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/sim/world.h>

namespace wrong_programs {

using rehearse::RankContext;

// Small programs with one mistake each, as users write them: bodies of whole worlds. In a file of their own, because
// the reports in the golden files name its lines; outside of rehearse, whose frames are no user's.

// Rank 1 sleeps longer than the others have patience.
void oversleeps(RankContext& ctx);

// Rank 1 sends to a rank that the group does not have.
void sends_to_nobody(RankContext& ctx);

// Rank 2 waits for a key that nobody sets, the others for rank 2.
void waits_for_a_key_that_nobody_sets(RankContext& ctx);

// Rank 2 waits for a condition; rank 1 receives from it, and rank 0 waits for what rank 1 would do then.
void waits_in_a_chain(RankContext& ctx);

// Rank 0 makes a call that no other rank makes.
void makes_a_call_too_many(RankContext& ctx);

// Rank 0 returns early; what the others clean up while they fail lets a thread of theirs go on.
void cleans_up_after_a_hang(RankContext& ctx);

// Two groups of the same ranks, used in opposite order.
void swaps_two_groups(RankContext& ctx);

// Rank 1 looks for a key that nobody sets, the others wait for it in a barrier.
void polls_for_a_key(RankContext& ctx);

// The same, with a pause after each look.
void polls_for_a_key_with_pauses(RankContext& ctx);

// Rank 1 cannot go on, and says why in three lines.
void throws_three_lines(RankContext& ctx);

// Rank 2 leaves out one of several equal calls and makes the others, through a helper as all do.
void leaves_out_one_of_equal_calls(RankContext& ctx);

// Rank 0 makes the ranks' calls elsewhere than the others, which is fine; rank 1 returns early, which is not.
void branches_on_the_rank(RankContext& ctx);

// Rank 1 returns early; rank 0 catches what its wait for it throws, and throws something else.
void hides_a_timeout(RankContext& ctx);

// The same with a key that rank 1 does not set.
void hides_a_timeout_of_the_store(RankContext& ctx);

// Rank 0 holds a lock in a collective; the others want it before.
void locks_around_a_collective(RankContext& ctx);

// Rank 1 locks a mutex that it has locked.
void locks_twice(RankContext& ctx);

// Rank 1 receives from rank 2 what rank 0 sends.
void receives_from_the_wrong_rank(RankContext& ctx);

// Rank 1 sets a key an hour after rank 0 has lost its patience.
void sets_a_key_too_late(RankContext& ctx);

// A thread of each rank writes a line now and then; rank 0 returns early.
void returns_early_beside_a_heartbeat(RankContext& ctx);

// Rank 1 pauses longer than the others' timeout, in a condition variable.
void pauses_in_a_condition_variable(RankContext& ctx);

// A thread of each rank looks now and then whether it is to end; two ranks use two groups in different order.
void swaps_two_groups_beside_a_watchdog(RankContext& ctx);

// Rank 0 looks now and then whether an all-reduce is done; rank 1 returns early.
void polls_for_a_collective_with_pauses(RankContext& ctx);

// Each rank but rank 0 sends to the rank before it, which receives from the rank before that.
void receives_from_the_other_side(RankContext& ctx);

// Rank 1 joins a thread that waits for a key that nobody sets.
void waits_for_a_key_in_a_thread(RankContext& ctx);

// Rank 1 sets the key that rank 0 waits for after a barrier of all, to which rank 0 comes after the key.
void sets_a_key_behind_a_barrier(RankContext& ctx);

// Rank 0 waits for a key, rank 1 for a message of rank 0, and rank 2, who has the key, for a collective of the two.
void waits_around_a_store(RankContext& ctx);

// Rank 2 broadcasts from another root than the others.
void broadcasts_from_another_root(RankContext& ctx);

// Two ranks; rank 0 expects one token more than rank 1 sends.
void expects_more_than_is_sent(RankContext& ctx);

// Ranks 0, 1 and 2 each begin with what the next one does last: in a group, in another group, and in a receive.
void waits_in_two_groups_and_a_receive(RankContext& ctx);

// Rank 1 returns; the others try again whatever they catch, each time with a new call.
void tries_again_for_ever(RankContext& ctx);

// Rank 1 returns; rank 0 gives up a call after 10 s, and then another one after as long again.
void gives_up_two_calls(RankContext& ctx);

// Rank 1 waits in a condition variable for a thread that waits for a key that nobody sets.
void waits_for_a_worker_that_waits_for_a_key(RankContext& ctx);

}  // namespace wrong_programs
