// SPDX-License-Identifier: BSD-3-Clause
#include "group_world.h"

#include <algorithm>
#include <utility>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <rehearse_internal/exec/this_rank.h>

#include "group_state.h"

namespace rehearse::comm {

void UnwaitedLog::note(GroupState& group, const RankWork& work) {
  const auto* const event = work.record().event();
  const std::uint32_t call_site = event != nullptr ? event->call_site : 0;
  const auto [entry, is_new] = unwaited_.try_emplace({group.identity().id, work.signature, call_site});
  Unwaited& calls = entry->second;
  if (is_new) {
    calls.are_messages = is_point_to_point(work.operation.type);
    calls.group = c10::intrusive_ptr<GroupState>::reclaim_copy(&group);
    calls.call = title_of(work);
    calls.first = work.record().id();
    if (event != nullptr) calls.where = events_.call_site(*event);
  }
  const int rank = work.global_rank();
  auto& of_rank = calls.ranks[rank];
  if (of_rank.last < group.known_until(work.rank(), calls.are_messages)) of_rank.times = 0;
  of_rank = {rank, of_rank.times + 1, std::max(of_rank.last, work.record().id())};
}

std::vector<UnwaitedCalls> UnwaitedLog::calls() const {
  std::vector<std::pair<std::uint64_t, UnwaitedCalls>> found;
  for (const auto& [key, unwaited] : unwaited_) {
    UnwaitedCalls calls{unwaited.call, {}, unwaited.where};
    const auto& members = unwaited.group->identity().ranks;
    for (const auto& [rank, of_rank] : unwaited.ranks) {
      const auto group_rank = std::ranges::find(members, rank) - members.begin();
      const auto known = unwaited.group->known_until(static_cast<int>(group_rank), unwaited.are_messages);
      if (of_rank.last >= known) calls.ranks.push_back(of_rank);
    }
    if (!calls.ranks.empty()) found.emplace_back(unwaited.first, std::move(calls));
  }
  std::ranges::sort(found, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<UnwaitedCalls> all;
  all.reserve(found.size());
  for (auto& [first, calls] : found) all.push_back(std::move(calls));
  return all;
}

GroupWorld::GroupWorld(exec::RankExecutor& executor, Fabric& fabric, EventLog& event_log, CheckerSink& sink,
                       const CommunicatorOptions& given)
    : options(given),
      log(event_log),
      mismatches(executor, sink),
      services{executor, executor.clock(), fabric, mismatches, short_messages, habits},
      payloads(static_cast<std::size_t>(executor.options().ranks)),
      groups(*this, static_cast<std::size_t>(executor.options().ranks)),
      works_(static_cast<std::size_t>(executor.options().ranks)),
      known_failures_(static_cast<std::size_t>(executor.options().ranks)) {}

GroupWorld::~GroupWorld() { groups.close(); }

void GroupWorld::release_works() noexcept {
  auto& works = works_[static_cast<std::size_t>(exec::this_rank::rank())];
  while (!works.empty()) {
    RankWork& work = works.front();
    works.pop_front();
    if (!work.asked() && work.record().is_open()) {
      work.mark_asked();
      work.owner()->on_unasked(work);
    }
    // A work with only weak references is in no registry. For any other work, the registry may be the last owner.
    if (c10::raw::intrusive_ptr::use_count(&work) == 0 || c10d::get_work_registry_size() == 0) continue;
    c10d::unregister_work(c10::intrusive_ptr<c10d::Work>::reclaim_copy(&work));
  }
}

void GroupWorld::wait_for_works() {
  std::vector<c10::intrusive_ptr<RankWork>> open;
  for (RankWork& work : works_[static_cast<std::size_t>(exec::this_rank::rank())]) {
    if (work.record().is_open() && c10::raw::intrusive_ptr::use_count(&work) > 0)
      open.push_back(c10::intrusive_ptr<RankWork>::reclaim_copy(&work));
  }
  for (const auto& work : open) work->wait();
}

void GroupWorld::begin_again(int rank) noexcept {
  works_[static_cast<std::size_t>(rank)].clear();
  payloads.forget_labels(rank);
  groups.begin_again(rank);
}

}  // namespace rehearse::comm
