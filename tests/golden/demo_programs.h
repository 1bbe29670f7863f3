// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/rank_context.h>

// Programs whose reports explain the verdict. They have a file of their own, as a user's program does.
namespace demo {

using rehearse::RankContext;

void leaves_out_a_helpers_call(RankContext& ctx);
void calls_a_helper_with_another_shape(RankContext& ctx);

void says_farewell_in_a_destructor(RankContext& ctx);
void says_farewell_to_nobody(RankContext& ctx);
void forgets_to_join(RankContext& ctx);

void leaves_out_new_group(RankContext& ctx);
void leaves_out_new_group_and_uses_it(RankContext& ctx);

void forgets_to_wait(RankContext& ctx);
void forgets_the_last_of_several(RankContext& ctx);
void waits_in_a_barrier_for_all(RankContext& ctx);
void drops_what_an_exception_leaves(RankContext& ctx);
void skips_a_step(RankContext& ctx);

void waits_elsewhere_than_it_called(RankContext& ctx);
void sends_into_a_buffer(RankContext& ctx);
void sends_into_a_buffer_beside_a_hang(RankContext& ctx);
void receives_from_anybody(RankContext& ctx);

void throws_with_a_line_end_first(RankContext& ctx);
void throws_like_an_allocator(RankContext& ctx);
void throws_like_torchscript(RankContext& ctx);
void throws_nested(RankContext& ctx);
void throws_what_a_terminal_obeys(RankContext& ctx);
void sends_one_row_too_many(RankContext& ctx);

void polls_behind_a_buffered_send(RankContext& ctx);
void broadcasts_from_a_branch(RankContext& ctx);
void waits_in_an_initialiser(RankContext& ctx);

}  // namespace demo
