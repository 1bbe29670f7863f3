// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/operation.h>

// Texts about waiting calls, failed barriers and groups, the same in all modes. `title`: the call's title_of().
namespace rehearse::comm {

// "allreduce #7 on group "world" (the ranks' calls do not match)".
std::string disagreeing(std::string_view title);

// "... (3 of 4 ranks have called it)".
std::string waiting_for_ranks(std::string_view title, std::size_t arrived, std::size_t ranks);

// "allreduce #7 on group "world": ranks 1-2 did not come within 0.5 s".
std::string overdue(std::string_view title, std::span<const int> missing, double seconds);

// The source and tag of a send or receive that waits for its peer's call. `source` is a rank in the group; -1: a
// receive from any source.
struct Envelope {
  int source = -1;
  int tag = 0;
};

// Describes a call that almost matches a send or receive: it has another tag, or another peer. `rank`: the caller's
// rank in the group. `others`: for a send, the receives of its peer; for a receive, the sends to `rank`; oldest first.
// Returns an empty text if `others` is empty.
std::string near_miss(const Operation& call, int rank, std::span<const Envelope> others, const GroupIdentity& group);

// "send #1 ... (no receive for it; rank 1 receives with tag 4)", "recv #1 ... (nothing has been sent)".
std::string waiting_for_message(std::string_view title, bool is_send, std::string_view near_miss);

// "new_group #2": the number of the call in the world.
std::string new_group_title(std::size_t index);

// Why a monitoredBarrier() fails, in Gloo's words and with ranks in the group. Rank 0 gets given_up_barrier() if ranks
// are missing at the time limit, and barrier_without_time() if DescribedBackend::is_barrier_without_time(). Every other
// rank gets barrier_given_up_by_rank_0(). `names_all`: the text names all of the missing ranks, not only the lowest.
std::string given_up_barrier(std::span<const int> missing, bool names_all, std::chrono::milliseconds limit);
std::string barrier_without_time();
std::string barrier_given_up_by_rank_0(int rank);

// "{0, 2}": the ranks as the caller passed them to new_group(). A long list is shortened if that leaves out no rank:
// "{0-511,513}".
std::string members_text(std::span<const int> ranks);

}  // namespace rehearse::comm
