// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/sim/world.h>

namespace wrong_programs {

using rehearse::RankContext;

// Small programs with one mistake each, as users write them. Each function is the body of a world. The functions have a
// file of their own, because the golden reports contain line numbers. They are outside namespace rehearse, because
// without line tables, reports take code of that namespace for library code.

// Rank 1 sleeps longer than the others' timeout.
void oversleeps(RankContext& ctx);

// Rank 1 sends to a rank that the group does not have.
void sends_to_nobody(RankContext& ctx);

// Rank 2 waits for a key that no rank sets, the others wait for rank 2.
void waits_for_a_key_that_nobody_sets(RankContext& ctx);

// Rank 2 waits for a condition, rank 1 receives from rank 2, and rank 0 waits for a key that rank 1 sets afterwards.
void waits_in_a_chain(RankContext& ctx);

// Rank 0 makes a call that no other rank makes.
void makes_a_call_too_many(RankContext& ctx);

// Rank 0 returns early, and the others wait for it. When the run ends them, a destructor wakes and joins a thread of
// each rank.
void cleans_up_after_a_hang(RankContext& ctx);

// Two ranks use two groups in opposite order.
void swaps_two_groups(RankContext& ctx);

// Rank 1 polls for a key that no rank sets; the others wait for rank 1 in a barrier.
void polls_for_a_key(RankContext& ctx);

// Rank 1 polls as in polls_for_a_key(), but sleeps after each poll.
void polls_for_a_key_with_pauses(RankContext& ctx);

// Rank 1 fails with a message of three lines.
void throws_three_lines(RankContext& ctx);

// Rank 2 leaves out one of several equal calls and makes the others. All ranks call through a helper.
void leaves_out_one_of_equal_calls(RankContext& ctx);

// Rank 0 makes its calls at other lines than the others, which is fine. Rank 1 returns early, which is not.
void branches_on_the_rank(RankContext& ctx);

// Rank 1 returns early. The others catch the timeout of their wait, and throw something else.
void hides_a_timeout(RankContext& ctx);

// Rank 1 returns early. The others wait for a store key that no rank sets, and hide the timeout of this wait.
void hides_a_timeout_of_the_store(RankContext& ctx);

// Rank 0 holds a lock during a collective, and the others need the lock before they call that collective.
void locks_around_a_collective(RankContext& ctx);

// Rank 1 locks a mutex that it already holds.
void locks_twice(RankContext& ctx);

// Rank 1 receives from rank 2, but rank 0 sends the message.
void receives_from_the_wrong_rank(RankContext& ctx);

// Rank 1 sets a key after an hour. Rank 0's wait for the key has timed out before that.
void sets_a_key_too_late(RankContext& ctx);

// Rank 0 returns early. A thread of each other rank sleeps again and again, without end.
void returns_early_beside_a_heartbeat(RankContext& ctx);

// Rank 1 pauses longer than the others' timeout, in a condition variable.
void pauses_in_a_condition_variable(RankContext& ctx);

// A thread of each rank checks now and then whether it must end. Two ranks use two groups in different order.
void swaps_two_groups_beside_a_watchdog(RankContext& ctx);

// Rank 1 returns early. The others check now and then whether an all-reduce is done.
void polls_for_a_collective_with_pauses(RankContext& ctx);

// Each rank but rank 0 sends to its predecessor, which receives from its own predecessor instead.
void receives_from_the_other_side(RankContext& ctx);

// Rank 1 joins a thread that waits for a key that no rank sets.
void waits_for_a_key_in_a_thread(RankContext& ctx);

// Rank 1 sets rank 0's key only after a barrier of all ranks. Rank 0 calls the barrier only after it has the key.
void sets_a_key_behind_a_barrier(RankContext& ctx);

// Rank 0 waits for a key of rank 2, rank 1 for a message of rank 0, and rank 2 for rank 1 in a collective.
void waits_around_a_store(RankContext& ctx);

// Rank 2 broadcasts from another root than the others.
void broadcasts_from_another_root(RankContext& ctx);

// Two ranks: rank 0 expects one token more than rank 1 sends.
void expects_more_than_is_sent(RankContext& ctx);

// Rank 0 waits for rank 1 in one group, rank 1 for rank 2 in another group, and rank 2 for a message of rank 0.
void waits_in_two_groups_and_a_receive(RankContext& ctx);

// Rank 1 returns. The others catch each error of a call, and try again with a new call.
void tries_again_for_ever(RankContext& ctx);

// Rank 1 sleeps for an hour. The others give up a call after 10 s, and then a second call after 10 s more.
void gives_up_two_calls(RankContext& ctx);

// Rank 1 waits in a condition variable for a thread, which waits for a key that no rank sets.
void waits_for_a_worker_that_waits_for_a_key(RankContext& ctx);

}  // namespace wrong_programs
