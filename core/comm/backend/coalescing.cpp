// SPDX-License-Identifier: BSD-3-Clause
// The calls of RankBackend that are several operations in one. The texts of the checks are those of ProcessGroupGloo.
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/comm/rank_backend.h>

#include "comm/call/argument_checks.h"
#include "comm/call/fill_operation.h"
#include "comm/group/group_world.h"
#include "comm/work/coalesced_work.h"
#include "refuse_in_capture.h"

namespace rehearse::comm {
namespace {

using c10d::OpType;
using Tensors = ArgumentChecks::Tensors;

void check_list(const ArgumentChecks& check, const Tensors& tensors, const char* list = "tensor list") {
  if (tensors.empty()) check.fail(fmt::format("requires non-empty {}", list));
  for (const auto& tensor : tensors) check.dense(tensor);
}

void check_lists(const ArgumentChecks& check, const Tensors& outputs, const Tensors& inputs) {
  if (outputs.size() != inputs.size()) check.fail("requires input/output tensor lists to have the same length");
  check_list(check, inputs);
}

Operation& add_part(Operation& call, OpType type) {
  auto& part = call.parts.emplace_back();
  part.type = type;
  return part;
}

// Inputs and outputs of a call with parts are those of the parts.
void gather_tensors(Operation& call) {
  for (const auto& part : call.parts) {
    call.inputs.append(part.inputs.begin(), part.inputs.end());
    call.outputs.append(part.outputs.begin(), part.outputs.end());
  }
}

void check_outputs(const ArgumentChecks& check, const RankBackend::TensorLists& outputs, const Tensors& inputs,
                   int size) {
  if (outputs.size() != static_cast<std::size_t>(size)) check.fail("output lists should be equal to world size");
  for (const auto& list : outputs) {
    if (list.size() != inputs.size()) {
      check.fail(fmt::format("invalid output size: (expected length {}, got {})", inputs.size(), list.size()));
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      check.dense(list[i]);
      if (list[i].sizes() != inputs[i].sizes()) {
        check.fail(fmt::format("invalid size of output tensor at index {} (expected length [{}], got [{}])", i,
                               fmt::join(inputs[i].sizes(), ", "), fmt::join(list[i].sizes(), ", ")));
      }
    }
  }
}

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
  const ArgumentChecks check("allreduce_coalesced", size_);
  check_list(check, tensors);
  for (const auto& tensor : tensors) {
    if (tensor.scalar_type() != tensors.front().scalar_type()) check.fail("tensors must all have the same type");
    if (tensor.device() != tensors.front().device()) check.fail("tensors must all be on the same device");
  }
  auto work = make(OpType::ALLREDUCE_COALESCED, options.timeout, options.asyncOp);
  auto& call = work->operation;
  for (const auto& tensor : tensors) {
    auto& part = add_part(call, OpType::ALLREDUCE);
    fill_allreduce(tensor, options.reduceOp, part);
    part.tag = Operation::kCopied;
  }
  gather_tensors(call);
  return submit(std::move(work));
}

auto RankBackend::allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options)
    -> WorkPtr {
  const ArgumentChecks check("allgather_coalesced", size_);
  check_list(check, inputs, "input tensor list");
  check_outputs(check, outputs, inputs, size_);
  auto work = make(OpType::ALLGATHER_COALESCED, options.timeout, options.asyncOp);
  auto& call = work->operation;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensors of_ranks;
    for (const auto& list : outputs) of_ranks.push_back(list[i]);
    fill_allgather(check, of_ranks, inputs[i], rank_, add_part(call, OpType::ALLGATHER));
  }
  gather_tensors(call);
  return submit(std::move(work));
}

auto RankBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                  const c10d::AllgatherOptions& options) -> WorkPtr {
  const ArgumentChecks check("allgather_into_tensor_coalesced", size_);
  check_lists(check, outputs, inputs);
  auto work = make(OpType::COALESCED, options.timeout, options.asyncOp);
  auto& call = work->operation;
  call.tag = Operation::kAllgatherIntoTensor;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    fill_allgather_base(check, outputs[i], inputs[i], add_part(call, OpType::_ALLGATHER_BASE));
  }
  gather_tensors(call);
  return submit(std::move(work));
}

auto RankBackend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                  const c10d::ReduceScatterOptions& options) -> WorkPtr {
  const ArgumentChecks check("reduce_scatter_tensor_coalesced", size_);
  check_lists(check, outputs, inputs);
  auto work = make(OpType::COALESCED, options.timeout, options.asyncOp);
  auto& call = work->operation;
  call.tag = Operation::kReduceScatterTensor;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    fill_reduce_scatter_base(check, outputs[i], inputs[i], options.reduceOp,
                             add_part(call, OpType::_REDUCE_SCATTER_BASE));
  }
  gather_tensors(call);
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
  for (const auto& each : works) group_->submit(each);
  return work;
}

}  // namespace rehearse::comm
