// SPDX-License-Identifier: BSD-3-Clause
// How RankBackend submits the calls between startCoalescing() and endCoalescing().
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <rehearse_internal/comm/coalescing.h>
#include <rehearse_internal/comm/rank_backend.h>
#include <rehearse_internal/exec/call_site_scope.h>

#include "comm/group/group_world.h"
#include "comm/work/coalesced_work.h"

namespace rehearse::comm {
namespace {

using c10d::OpType;

// Returns the works to submit: `collective`, which gets the gathered collectives as its parts, and then the sends and
// receives in order. Leaves out `collective` if no collective was gathered.
Works handed_on(const Works& gathered, c10::intrusive_ptr<RankWork> collective) {
  Works works;
  for (const auto& work : gathered) {
    if (!is_point_to_point(work->operation.type)) add_part(collective->operation, std::move(work->operation));
  }
  if (!collective->operation.parts.empty()) works.push_back(std::move(collective));
  std::copy_if(gathered.begin(), gathered.end(), std::back_inserter(works),
               [](const auto& work) { return is_point_to_point(work->retrieveOpType()); });
  return works;
}

// Makes one unit of the sends and receives, except for buffered sends: these complete at once and wait for no other
// call.
void unite(const Works& works, GroupState& group) {
  const bool buffered = group.world().options.buffered_sends;
  Works unit;
  for (const auto& work : works) {
    const auto type = work->retrieveOpType();
    if (is_point_to_point(type) && !(buffered && type == OpType::SEND)) unit.push_back(work);
  }
  if (unit.size() > 1 && !group.executor().ending()) group.point_to_point().coalesce(std::move(unit));
}

}  // namespace

void RankBackend::startCoalescing() {
  require_start_of_coalescing();
  coalesced_ = c10::make_intrusive<CoalescedWork>(rank_);
}

auto RankBackend::endCoalescing() -> WorkPtr {
  require_end_of_coalescing();
  auto work = std::exchange(coalesced_, nullptr);
  const auto gathered = std::exchange(gathered_, {});
  const auto stacks = std::exchange(gathered_at_, {});
  if (gathered.empty()) return {};
  const auto works = handed_on(gathered, make({OpType::COALESCED}));
  work->take(works);
  if (group_->world().options.coalesced_as_one) unite(works, *group_);
  for (const auto& each : works) {
    // A send or receive has its own place, and the united collectives that of this call.
    const auto index = static_cast<std::size_t>(std::ranges::find(gathered, each) - gathered.begin());
    std::optional<exec::CallSiteScope> scope;
    if (index < stacks.size()) scope.emplace(stacks[index]);
    submit_to_group(each);
  }
  return work;
}

}  // namespace rehearse::comm
