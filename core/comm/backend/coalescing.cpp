// SPDX-License-Identifier: BSD-3-Clause
// Calls between startCoalescing() and endCoalescing(), which become several operations in one.
#include <utility>

#include <rehearse_internal/comm/rank_backend.h>

#include "comm/group/group_world.h"
#include "comm/work/coalesced_work.h"
#include "refuse_in_capture.h"

namespace rehearse::comm {
namespace {

using c10d::OpType;

// The sends and receives become one unit, but for sends that are buffered: they have left.
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
  refuse_in_capture("startCoalescing()");
  TORCH_CHECK(coalesced_ == nullptr, "rehearse::startCoalescing: called twice without endCoalescing()");
  coalesced_ = c10::make_intrusive<CoalescedWork>(rank_);
}

auto RankBackend::endCoalescing() -> WorkPtr {
  TORCH_CHECK(coalesced_ != nullptr, "rehearse::endCoalescing: there was no startCoalescing()");
  auto work = std::exchange(coalesced_, nullptr);
  if (work->empty()) return {};
  const auto& works = work->launch(make({OpType::COALESCED}));
  if (group_->world().options.coalesced_as_one) unite(works, *group_);
  for (const auto& each : works) submit_to_group(each);
  return work;
}

}  // namespace rehearse::comm
