// SPDX-License-Identifier: BSD-3-Clause
// The calls of RankBackend that are several operations in one.
#include <utility>

#include <rehearse_internal/comm/rank_backend.h>

#include "comm/call/call_describer.h"
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

auto RankBackend::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) -> WorkPtr {
  auto work = make(OpType::ALLREDUCE_COALESCED, options.timeout, options.asyncOp);
  describe().allreduce_coalesced(tensors, options, work->operation);
  return submit(std::move(work));
}

auto RankBackend::allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options)
    -> WorkPtr {
  auto work = make(OpType::ALLGATHER_COALESCED, options.timeout, options.asyncOp);
  describe().allgather_coalesced(outputs, inputs, work->operation);
  return submit(std::move(work));
}

auto RankBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                  const c10d::AllgatherOptions& options) -> WorkPtr {
  auto work = make(OpType::COALESCED, options.timeout, options.asyncOp);
  describe().allgather_into_tensor_coalesced(outputs, inputs, work->operation);
  return submit(std::move(work));
}

auto RankBackend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                  const c10d::ReduceScatterOptions& options) -> WorkPtr {
  auto work = make(OpType::COALESCED, options.timeout, options.asyncOp);
  describe().reduce_scatter_tensor_coalesced(outputs, inputs, options, work->operation);
  return submit(std::move(work));
}

void RankBackend::startCoalescing() {
  refuse_in_capture("startCoalescing()");
  TORCH_CHECK(coalesced_ == nullptr, "rehearse::startCoalescing: called twice without endCoalescing()");
  coalesced_ = c10::make_intrusive<CoalescedWork>(rank_);
}

auto RankBackend::endCoalescing() -> WorkPtr {
  TORCH_CHECK(coalesced_ != nullptr, "rehearse::endCoalescing: there was no startCoalescing()");
  auto work = std::exchange(coalesced_, nullptr);
  if (work->empty()) return {};
  const auto& works = work->launch(make(OpType::COALESCED, c10d::kUnsetTimeout));
  if (group_->world().options.coalesced_as_one) unite(works, *group_);
  for (const auto& each : works) submit_to_group(each);
  return work;
}

}  // namespace rehearse::comm
