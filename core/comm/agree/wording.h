// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/operation.h>

// What reports say of calls that wait. `title`: title_of() the call.
namespace rehearse::comm {

// "allreduce #7 on group "world" (the ranks' calls do not match)".
std::string disagreeing(std::string_view title);

// "... (3 of 4 ranks have called it)".
std::string waiting_for_ranks(std::string_view title, std::size_t arrived, std::size_t ranks);

// A send or a receive that has not met its peer's: from which rank (within the group) it comes, or is expected; -1:
// from any.
struct Envelope {
  int source = -1;
  int tag = 0;
};

// A near miss of a send or receive of `rank` (within the group): the peer is there with another tag, or has its eyes on
// another rank. `others`: for a send the receives of its peer, for a receive the sends to this rank; oldest first.
// Empty: there is none.
std::string near_miss(const Operation& call, int rank, std::span<const Envelope> others, const GroupIdentity& group);

// "send #1 ... (no receive for it; rank 1 receives with tag 4)", "recv #1 ... (nothing has been sent)".
std::string waiting_for_message(std::string_view title, bool is_send, std::string_view near_miss);

// "new_group #2": which of the world.
std::string new_group_title(std::size_t index);

// Why a monitoredBarrier() fails, in the words of Gloo, with ranks of the group: for rank 0, which gives it up, when
// others are missing at the end of its time (`names_all`: it names more than the first of them), or when it has no time
// at all; and for every other rank.
std::string given_up_barrier(std::span<const int> missing, bool names_all, std::chrono::milliseconds limit);
std::string barrier_without_time();
std::string barrier_given_up_by_rank_0(int rank);

// "{0, 2}": as new_group() was given them.
std::string members_text(std::span<const int> ranks);

}  // namespace rehearse::comm
