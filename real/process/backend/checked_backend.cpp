// SPDX-License-Identifier: BSD-3-Clause
#include "checked_backend.h"

#include <utility>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <rehearse/comm/event_log.h>

#include <rehearse_internal/comm/title.h>

namespace rehearse::real {
namespace {

using c10d::OpType;

const at::Tensor* on_device(const comm::Operation& call) {
  for (const auto* const list : {&call.inputs, &call.outputs}) {
    for (const auto& tensor : *list) {
      if (!tensor.device().is_cpu()) return &tensor;
    }
  }
  return nullptr;
}

// On the stream that is the caller's now: what it has launched there comes first.
CarryOut on_callers_stream(const comm::Operation& call, CarryOut carry_out) {
  const auto* const tensor = on_device(call);
  if (tensor == nullptr) return carry_out;
  const auto stream = c10::impl::VirtualGuardImpl(tensor->device().type()).getStream(tensor->device());
  return [stream, carry_out = std::move(carry_out)](int source) {
    const c10::StreamGuard guard(stream);
    return carry_out(source);
  };
}

}  // namespace

CheckedBackend::CheckedBackend(RankServices& services, comm::GroupIdentity group, std::string key, int rank,
                               BackendsBelow below, std::chrono::milliseconds timeout)
    : DescribedBackend(rank, group.size()),
      services_(services),
      group_(std::move(group)),
      key_(std::move(key)),
      below_(std::move(below)),
      timeout_(timeout) {}

// As destroy_process_group(): what is still under way on a device is waited for here.
CheckedBackend::~CheckedBackend() {
  try {
    if (below_.device != nullptr) below_.device->shutdown();
  } catch (const c10::Error&) {
    // Of calls that have failed: their waits have told.
  }
}

comm::Operation CheckedBackend::make(OpType type, std::chrono::milliseconds timeout, bool async_op) {
  comm::Operation call;
  call.type = type;
  call.async_op = async_op;
  call.timeout = timeout == c10d::kUnsetTimeout ? timeout_ : timeout;
  if (call.timeout.count() > 0) call.timeout += std::exchange(extension_, std::chrono::milliseconds(0));
  return call;
}

auto CheckedBackend::below(const comm::Operation& call) const -> BackendPtr {
  if (on_device(call) == nullptr || below_.device == nullptr) return below_.host;
  return below_.device;
}

c10::intrusive_ptr<CheckedWork> CheckedBackend::begin(comm::Operation call, CarryOut carry_out) {
  services_.session.require_running();
  const bool message = comm::is_point_to_point(call.type);
  const auto sequence = message ? ++messages_ : ++collectives_;
  const auto number = static_cast<std::uint32_t>(collectives_ + messages_);
  const auto entry = services_.journal.record(call, group_, sequence, number);
  auto made = CallMade{key_, sequence, facts_of(call)};
  carry_out = on_callers_stream(call, std::move(carry_out));
  auto title = comm::title_of(call, sequence, group_);
  auto work = c10::make_intrusive<CheckedWork>(services_.session, services_.journal, rank_, std::move(call),
                                               std::move(title), entry, sequence, std::move(carry_out));
  if (services_.checks && size_ > 1) {
    services_.session.make(made, work->awaited());
  } else {
    work->go(-1);
  }
  return work;
}

auto CheckedBackend::submit(comm::Operation call, CarryOut carry_out) -> WorkPtr {
  if (coalesced_ == nullptr) return begin(std::move(call), std::move(carry_out));
  gathered_.push_back({std::move(call), std::move(carry_out)});
  return coalesced_;
}

auto CheckedBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) -> WorkPtr {
  auto call = make(OpType::BROADCAST, options.timeout, options.asyncOp);
  describe().broadcast(tensors, options, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int) mutable { return to->broadcast(tensors, options); });
}

auto CheckedBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) -> WorkPtr {
  const bool sparse = comm::allreduces_sparse(tensors);
  auto call = make(sparse ? OpType::_ALLREDUCE_SPARSE : OpType::ALLREDUCE, options.timeout, options.asyncOp);
  describe().allreduce(tensors, options, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int) mutable { return to->allreduce(tensors, options); });
}

auto CheckedBackend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) -> WorkPtr {
  return allreduce(tensors, options);
}

auto CheckedBackend::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) -> WorkPtr {
  auto call = make(OpType::ALLREDUCE_COALESCED, options.timeout, options.asyncOp);
  describe().allreduce_coalesced(tensors, options, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int) mutable { return to->allreduce_coalesced(tensors, options); });
}

auto CheckedBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) -> WorkPtr {
  auto call = make(OpType::REDUCE, options.timeout, options.asyncOp);
  describe().reduce(tensors, options, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int) mutable { return to->reduce(tensors, options); });
}

auto CheckedBackend::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options)
    -> WorkPtr {
  auto call = make(OpType::ALLGATHER, options.timeout, options.asyncOp);
  describe().allgather(outputs, inputs, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int) mutable { return to->allgather(outputs, inputs, options); });
}

auto CheckedBackend::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options)
    -> WorkPtr {
  auto call = make(OpType::_ALLGATHER_BASE, options.timeout, options.asyncOp);
  describe().allgather_base(output, input, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int) mutable { return to->_allgather_base(output, input, options); });
}

auto CheckedBackend::allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options)
    -> WorkPtr {
  auto call = make(OpType::ALLGATHER_COALESCED, options.timeout, options.asyncOp);
  describe().allgather_coalesced(outputs, inputs, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int) mutable { return to->allgather_coalesced(outputs, inputs, options); });
}

auto CheckedBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                     const c10d::AllgatherOptions& options) -> WorkPtr {
  auto call = make(OpType::COALESCED, options.timeout, options.asyncOp);
  describe().allgather_into_tensor_coalesced(outputs, inputs, call);
  const auto to = below(call);
  return submit(std::move(call),
                [=](int) mutable { return to->allgather_into_tensor_coalesced(outputs, inputs, options); });
}

auto CheckedBackend::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) -> WorkPtr {
  auto call = make(OpType::GATHER, options.timeout, options.asyncOp);
  describe().gather(outputs, inputs, options, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int) mutable { return to->gather(outputs, inputs, options); });
}

auto CheckedBackend::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) -> WorkPtr {
  auto call = make(OpType::SCATTER, options.timeout, options.asyncOp);
  describe().scatter(outputs, inputs, options, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int) mutable { return to->scatter(outputs, inputs, options); });
}

auto CheckedBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options)
    -> WorkPtr {
  auto call = make(OpType::REDUCE_SCATTER, options.timeout, options.asyncOp);
  describe().reduce_scatter(outputs, inputs, options, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int) mutable { return to->reduce_scatter(outputs, inputs, options); });
}

auto CheckedBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                          const c10d::ReduceScatterOptions& options) -> WorkPtr {
  auto call = make(OpType::_REDUCE_SCATTER_BASE, options.timeout, options.asyncOp);
  describe().reduce_scatter_base(output, input, options, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int) mutable { return to->_reduce_scatter_base(output, input, options); });
}

auto CheckedBackend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                     const c10d::ReduceScatterOptions& options) -> WorkPtr {
  auto call = make(OpType::COALESCED, options.timeout, options.asyncOp);
  describe().reduce_scatter_tensor_coalesced(outputs, inputs, options, call);
  const auto to = below(call);
  return submit(std::move(call),
                [=](int) mutable { return to->reduce_scatter_tensor_coalesced(outputs, inputs, options); });
}

auto CheckedBackend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                                   std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options)
    -> WorkPtr {
  auto call = make(OpType::ALLTOALL_BASE, options.timeout, options.asyncOp);
  describe().alltoall_base(output, input, output_splits, input_splits, call);
  const auto to = below(call);
  return submit(std::move(call),
                [=](int) mutable { return to->alltoall_base(output, input, output_splits, input_splits, options); });
}

auto CheckedBackend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) -> WorkPtr {
  auto call = make(OpType::ALLTOALL, options.timeout, options.asyncOp);
  describe().alltoall(outputs, inputs, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int) mutable { return to->alltoall(outputs, inputs, options); });
}

auto CheckedBackend::send(Tensors& tensors, int destination, int tag) -> WorkPtr {
  auto call = make(OpType::SEND, c10d::kUnsetTimeout);
  describe().point_to_point(tensors, destination, tag, coalesced_ != nullptr, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int) mutable { return to->send(tensors, destination, tag); });
}

auto CheckedBackend::recv(Tensors& tensors, int source, int tag) -> WorkPtr {
  auto call = make(OpType::RECV, c10d::kUnsetTimeout);
  describe().point_to_point(tensors, source, tag, coalesced_ != nullptr, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int) mutable { return to->recv(tensors, source, tag); });
}

auto CheckedBackend::recvAnysource(Tensors& tensors, int tag) -> WorkPtr {
  auto call = make(OpType::RECVANYSOURCE, c10d::kUnsetTimeout);
  describe().point_to_point(tensors, -1, tag, coalesced_ != nullptr, call);
  const auto to = below(call);
  return submit(std::move(call), [=](int source) mutable {
    return source >= 0 ? to->recv(tensors, source, tag) : to->recvAnysource(tensors, tag);
  });
}

auto CheckedBackend::barrier(const c10d::BarrierOptions& options) -> WorkPtr {
  auto call = make(OpType::BARRIER, options.timeout, options.asyncOp);
  const auto to = below_.host;
  return submit(std::move(call), [=](int) { return to->barrier(options); });
}

}  // namespace rehearse::real
