// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/comm/rank_backend.h>

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/comm/errors.h>

#include "comm/call/argument_checks.h"
#include "comm/call/fill_operation.h"
#include "comm/group/group_world.h"
#include "comm/work/coalesced_work.h"
#include "refuse_in_capture.h"
#include "timeout_extension.h"

namespace rehearse::comm {

using c10d::OpType;

RankBackend::RankBackend(c10::intrusive_ptr<GroupState> group, int rank, std::chrono::milliseconds timeout)
    : c10d::Backend(rank, group->size()), group_(std::move(group)), timeout_(timeout) {}

RankBackend::~RankBackend() = default;

const GroupIdentity& RankBackend::identity() const noexcept { return group_->identity(); }

void RankBackend::name_payload(const at::Tensor& tensor, const std::string& name) {
  group_->world().payloads.name(identity().global_rank(rank_), tensor, name);
}

void RankBackend::forget_payload(const c10::TensorImpl* tensor) noexcept {
  if (!group_->closed()) group_->world().payloads.forget(identity().global_rank(rank_), tensor);
}

std::uint64_t RankBackend::getSequenceNumberForGroup() { return group_->collectives().calls_of(rank_); }

c10::intrusive_ptr<RankWork> RankBackend::make(OpType type, std::chrono::milliseconds timeout, bool async_op) {
  refuse_in_capture("an operation of a c10d::Backend");
  auto work = c10::make_intrusive<RankWork>(group_, rank_, type);
  work->operation.async_op = async_op;
  auto& limit = work->operation.timeout;
  limit = timeout == c10d::kUnsetTimeout ? timeout_ : timeout;
  if (extension_ != nullptr && limit.count() > 0) [[unlikely]]
    limit += extension_->take(work);
  return work;
}

auto RankBackend::submit(c10::intrusive_ptr<RankWork> work) -> WorkPtr {
  if (coalesced_ != nullptr) {
    group_->check(*work);
    coalesced_->add(std::move(work));
    return coalesced_;
  }
  group_->submit(work);
  return work;
}

auto RankBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) -> WorkPtr {
  const ArgumentChecks check("broadcast", size_);
  check.root(options.rootRank, options.rootTensor);
  const auto& tensor = check.single(tensors);
  check.filled(tensor);
  auto work = make(OpType::BROADCAST, options.timeout, options.asyncOp);
  auto& call = work->operation;
  call.root = static_cast<int>(options.rootRank);
  call.inputs.push_back(tensor);
  call.outputs.push_back(tensor);
  return submit(std::move(work));
}

auto RankBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) -> WorkPtr {
  const ArgumentChecks check("allreduce", size_);
  if (tensors.empty()) check.fail("requires non-empty tensor list");
  const auto& tensor = check.only(tensors);
  if (!tensor.is_sparse()) {
    check.dense(tensor);
    check.filled(tensor);
  }
  auto work =
      make(tensor.is_sparse() ? OpType::_ALLREDUCE_SPARSE : OpType::ALLREDUCE, options.timeout, options.asyncOp);
  fill_allreduce(tensor, options.reduceOp, work->operation);
  return submit(std::move(work));
}

auto RankBackend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) -> WorkPtr {
  return allreduce(tensors, options);
}

auto RankBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) -> WorkPtr {
  const ArgumentChecks check("reduce", size_);
  check.root(options.rootRank, options.rootTensor);
  const auto& tensor = check.single(tensors);
  check.filled(tensor);
  auto work = make(OpType::REDUCE, options.timeout, options.asyncOp);
  auto& call = work->operation;
  call.root = static_cast<int>(options.rootRank);
  set_reduce_op(options.reduceOp, call);
  call.inputs.push_back(tensor);
  call.outputs.push_back(tensor);
  return submit(std::move(work));
}

auto RankBackend::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) -> WorkPtr {
  const ArgumentChecks check("allgather", size_);
  const auto& input = check.single(inputs, "input tensor list");
  auto work = make(OpType::ALLGATHER, options.timeout, options.asyncOp);
  fill_allgather(check, check.gathered_by_all(outputs), input, rank_, work->operation);
  return submit(std::move(work));
}

auto RankBackend::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options)
    -> WorkPtr {
  auto work = make(OpType::_ALLGATHER_BASE, options.timeout, options.asyncOp);
  fill_allgather_base({"_allgather_base", size_}, output, input, work->operation);
  return submit(std::move(work));
}

auto RankBackend::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) -> WorkPtr {
  const ArgumentChecks check("gather", size_);
  check.root(options.rootRank);
  const auto& input = check.single(inputs, "input tensor list");
  auto work = make(OpType::GATHER, options.timeout, options.asyncOp);
  auto& call = work->operation;
  call.root = static_cast<int>(options.rootRank);
  call.inputs.push_back(input);
  if (rank_ == call.root) {
    const auto& list = check.one_for_each_rank(outputs, true);
    check.same_type(input, list);
    check.same_sizes(input, list);
    call.outputs.assign(list.begin(), list.end());
  } else if (!outputs.empty()) {
    check.fail("requires empty output on non-root");
  }
  return submit(std::move(work));
}

auto RankBackend::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) -> WorkPtr {
  const ArgumentChecks check("scatter", size_);
  check.root(options.rootRank);
  const auto& output = check.single(outputs, "output tensor list");
  check.filled(output);
  auto work = make(OpType::SCATTER, options.timeout, options.asyncOp);
  auto& call = work->operation;
  call.root = static_cast<int>(options.rootRank);
  call.outputs.push_back(output);
  if (rank_ == call.root) {
    const auto& list = check.one_for_each_rank(inputs, false);
    check.same_type(output, list);
    check.same_sizes(output, list);
    for (const auto& input : list) check.filled(input);
    for (std::size_t i = 0; i < list.size(); ++i) check.same_layout(output, list[i], i);
    call.inputs.assign(list.begin(), list.end());
  } else if (!inputs.empty()) {
    check.fail("requires empty input on non-root");
  }
  return submit(std::move(work));
}

auto RankBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options)
    -> WorkPtr {
  const ArgumentChecks check("reduce_scatter", size_);
  const auto& output = check.single(outputs, "output tensor list");
  const auto& list = check.one_for_each_rank(inputs, false);
  check.same_type(output, list);
  check.same_count(output, list[static_cast<std::size_t>(rank_)], rank_);
  check.filled(output);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].sizes() == output.sizes()) check.same_layout(output, list[i], i);
  }
  auto work = make(OpType::REDUCE_SCATTER, options.timeout, options.asyncOp);
  auto& call = work->operation;
  set_reduce_op(options.reduceOp, call);
  call.inputs.assign(list.begin(), list.end());
  call.outputs.push_back(output);
  return submit(std::move(work));
}

auto RankBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options)
    -> WorkPtr {
  auto work = make(OpType::_REDUCE_SCATTER_BASE, options.timeout, options.asyncOp);
  fill_reduce_scatter_base({"_reduce_scatter_base", size_}, output, input, options.reduceOp, work->operation);
  return submit(std::move(work));
}

auto RankBackend::barrier(const c10d::BarrierOptions& options) -> WorkPtr {
  return submit(make(OpType::BARRIER, options.timeout, options.asyncOp));
}

}  // namespace rehearse::comm
