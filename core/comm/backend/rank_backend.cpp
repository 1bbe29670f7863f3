// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/comm/rank_backend.h>

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/operators/lone_code.h>

#include "comm/call/call_describer.h"
#include "comm/group/group_world.h"
#include "comm/work/coalesced_work.h"
#include "refuse_in_capture.h"
#include "timeout_extension.h"

namespace rehearse::comm {

using c10d::OpType;

RankBackend::RankBackend(c10::intrusive_ptr<GroupState> group, int rank, std::chrono::milliseconds timeout)
    : DescribedBackend(rank, group->size()), group_(std::move(group)), timeout_(timeout) {}

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
  operators::refuse_in_lone_code(name_of(type), identity().name);
  exec::this_rank::begin_call();
  auto work = c10::make_intrusive<RankWork>(group_, rank_, type);
  work->operation.async_op = async_op;
  auto& limit = work->operation.timeout;
  limit = timeout == c10d::kUnsetTimeout ? timeout_ : timeout;
  if (extension_ != nullptr && limit.count() > 0) [[unlikely]]
    limit += extension_->take(work);
  return work;
}

void RankBackend::submit_to_group(const c10::intrusive_ptr<RankWork>& work) {
  try {
    group_->submit(work);
  } catch (...) {
    exec::this_rank::fail_call(std::current_exception());
    group_->note_failure_known(rank_);
    throw;
  }
  exec::this_rank::end_call();
}

CallDescriber RankBackend::describe() const noexcept { return {rank_, size_}; }

auto RankBackend::submit(c10::intrusive_ptr<RankWork> work) -> WorkPtr {
  if (coalesced_ != nullptr) {
    group_->check(*work);
    coalesced_->add(std::move(work));
    exec::this_rank::end_call();
    return coalesced_;
  }
  submit_to_group(work);
  return work;
}

auto RankBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) -> WorkPtr {
  auto work = make(OpType::BROADCAST, options.timeout, options.asyncOp);
  describe().broadcast(tensors, options, work->operation);
  return submit(std::move(work));
}

auto RankBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) -> WorkPtr {
  const auto type = allreduces_sparse(tensors) ? OpType::_ALLREDUCE_SPARSE : OpType::ALLREDUCE;
  auto work = make(type, options.timeout, options.asyncOp);
  describe().allreduce(tensors, options, work->operation);
  return submit(std::move(work));
}

auto RankBackend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) -> WorkPtr {
  return allreduce(tensors, options);
}

auto RankBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) -> WorkPtr {
  auto work = make(OpType::REDUCE, options.timeout, options.asyncOp);
  describe().reduce(tensors, options, work->operation);
  return submit(std::move(work));
}

auto RankBackend::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) -> WorkPtr {
  auto work = make(OpType::ALLGATHER, options.timeout, options.asyncOp);
  describe().allgather(outputs, inputs, work->operation);
  return submit(std::move(work));
}

auto RankBackend::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options)
    -> WorkPtr {
  auto work = make(OpType::_ALLGATHER_BASE, options.timeout, options.asyncOp);
  describe().allgather_base(output, input, work->operation);
  return submit(std::move(work));
}

auto RankBackend::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) -> WorkPtr {
  auto work = make(OpType::GATHER, options.timeout, options.asyncOp);
  describe().gather(outputs, inputs, options, work->operation);
  return submit(std::move(work));
}

auto RankBackend::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) -> WorkPtr {
  auto work = make(OpType::SCATTER, options.timeout, options.asyncOp);
  describe().scatter(outputs, inputs, options, work->operation);
  return submit(std::move(work));
}

auto RankBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options)
    -> WorkPtr {
  auto work = make(OpType::REDUCE_SCATTER, options.timeout, options.asyncOp);
  describe().reduce_scatter(outputs, inputs, options, work->operation);
  return submit(std::move(work));
}

auto RankBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options)
    -> WorkPtr {
  auto work = make(OpType::_REDUCE_SCATTER_BASE, options.timeout, options.asyncOp);
  describe().reduce_scatter_base(output, input, options, work->operation);
  return submit(std::move(work));
}

auto RankBackend::barrier(const c10d::BarrierOptions& options) -> WorkPtr {
  return submit(make(OpType::BARRIER, options.timeout, options.asyncOp));
}

}  // namespace rehearse::comm
