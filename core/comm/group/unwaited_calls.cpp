// SPDX-License-Identifier: BSD-3-Clause
// Works that nobody ever asked for their end.
#include <algorithm>
#include <exception>
#include <utility>

#include <rehearse/comm/communicators.h>

#include "group_state.h"

namespace rehearse::comm {

void Communicators::note_unwaited(const RankWork& work) {
  // What an exception leaves behind is not what went wrong.
  if (executor_.ending() || std::uncaught_exceptions() > 0) return;
  auto& group = work.group();
  const auto* const event = work.event();
  const std::uint32_t place = event != nullptr ? event->call_site : 0;
  const auto [entry, is_new] = unwaited_.try_emplace({group.id(), work.signature, place});
  Unwaited& calls = entry->second;
  if (is_new) {
    calls.group = c10::intrusive_ptr<GroupState>::reclaim_copy(&group);
    calls.call = title_of(work);
    calls.first = work.record_id();
    if (event != nullptr) calls.where = events_.call_site(*event);
  }
  const int rank = group.global_rank(work.rank());
  auto& of_rank = calls.ranks[rank];
  of_rank = {rank, of_rank.times + 1, std::max(of_rank.last, work.record_id())};
}

std::vector<UnwaitedCalls> Communicators::unwaited_calls() const {
  std::vector<std::pair<std::uint64_t, UnwaitedCalls>> found;
  for (const auto& [key, unwaited] : unwaited_) {
    UnwaitedCalls calls{unwaited.call, {}, unwaited.where};
    const auto& members = unwaited.group->ranks();
    for (const auto& [rank, of_rank] : unwaited.ranks) {
      const auto place = std::find(members.begin(), members.end(), rank) - members.begin();
      if (of_rank.last >= unwaited.group->last_barrier(static_cast<int>(place))) calls.ranks.push_back(of_rank);
    }
    if (!calls.ranks.empty()) found.emplace_back(unwaited.first, std::move(calls));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<UnwaitedCalls> all;
  all.reserve(found.size());
  for (auto& [first, calls] : found) all.push_back(std::move(calls));
  return all;
}

}  // namespace rehearse::comm
