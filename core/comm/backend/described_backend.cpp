// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/comm/described_backend.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include <rehearse_internal/operators/capture_mode.h>
#include <rehearse_internal/operators/collective_gradients.h>
#include <rehearse_internal/operators/lone_code.h>

#include "comm/call/call_describer.h"
#include "derived_group.h"

namespace rehearse::comm {
namespace {

using c10d::OpType;

// Whether DescribedBackend overrides the method to which the argument points. If it does not, `&DescribedBackend::name`
// has the type of a pointer to a member of c10d::Backend, and calling that member throws.
template <class Class, class Result, class... Arguments>
consteval bool is_described(Result (Class::*)(Arguments...)) {
  return std::is_same_v<Class, DescribedBackend>;
}

struct DescribedCall {
  OpType type;
  bool is_described;
};

constexpr std::array kCalls{
    DescribedCall{OpType::BROADCAST, is_described(&DescribedBackend::broadcast)},
    DescribedCall{OpType::ALLREDUCE, is_described(&DescribedBackend::allreduce)},
    DescribedCall{OpType::_ALLREDUCE_SPARSE, is_described(&DescribedBackend::allreduce_sparse)},
    DescribedCall{OpType::ALLREDUCE_COALESCED, is_described(&DescribedBackend::allreduce_coalesced)},
    DescribedCall{OpType::REDUCE, is_described(&DescribedBackend::reduce)},
    DescribedCall{OpType::ALLGATHER, is_described(&DescribedBackend::allgather)},
    DescribedCall{OpType::_ALLGATHER_BASE, is_described(&DescribedBackend::_allgather_base)},
    DescribedCall{OpType::ALLGATHER_COALESCED, is_described(&DescribedBackend::allgather_coalesced)},
    DescribedCall{OpType::COALESCED, is_described(&DescribedBackend::allgather_into_tensor_coalesced)},
    DescribedCall{OpType::COALESCED, is_described(&DescribedBackend::reduce_scatter_tensor_coalesced)},
    DescribedCall{OpType::GATHER, is_described(&DescribedBackend::gather)},
    DescribedCall{OpType::SCATTER, is_described(&DescribedBackend::scatter)},
    DescribedCall{OpType::REDUCE_SCATTER, is_described(&DescribedBackend::reduce_scatter)},
    DescribedCall{OpType::_REDUCE_SCATTER_BASE, is_described(&DescribedBackend::_reduce_scatter_base)},
    DescribedCall{OpType::ALLTOALL_BASE, is_described(&DescribedBackend::alltoall_base)},
    DescribedCall{OpType::ALLTOALL, is_described(&DescribedBackend::alltoall)},
    DescribedCall{OpType::SEND, is_described(&DescribedBackend::send)},
    DescribedCall{OpType::RECV, is_described(&DescribedBackend::recv)},
    DescribedCall{OpType::RECVANYSOURCE, is_described(&DescribedBackend::recvAnysource)},
    DescribedCall{OpType::BARRIER, is_described(&DescribedBackend::barrier)},
};

consteval bool all_described() {
  const auto is_missing = [](const OpRow& row) {
    return std::ranges::none_of(kCalls, [&](const auto& call) { return call.type == row.type; });
  };
  return std::ranges::none_of(op_table::kRows, is_missing) &&
         std::ranges::all_of(kCalls, [](const auto& call) { return call.is_described; });
}
static_assert(all_described(), "each operation of op_table.h has a call here that describes it");

// Refuses a call that reaches a back end directly while the caller's code is being captured. A capture records only
// calls that go through LibTorch's dispatcher, as those of a c10d::ProcessGroup do.
void refuse_in_capture(const char* what) {
  operators::refuse_in_capture(what, "Use the calls of c10d::ProcessGroup, or put it into a rehearse::eager_region().");
}

CallDescriber describer(const c10d::Backend& backend) { return {backend.getRank(), backend.getSize()}; }

// Returns a function that repeats the call on another back end. The function owns copies of the arguments.
template <class Method, class... Arguments>
std::function<c10::intrusive_ptr<c10d::Work>(c10d::Backend&, int)> again(Method method, Arguments... arguments) {
  return [method, ... own = std::move(arguments)](c10d::Backend& to, int) mutable { return (to.*method)(own...); };
}

}  // namespace

DescribedBackend::DescribedBackend(int rank, int size, std::chrono::milliseconds timeout)
    : libtorch::Backend(rank, size), timeout_(timeout) {
  operators::register_collective_gradients();
}

auto DescribedBackend::monitored_barrier(const c10d::BarrierOptions& options) const -> Called {
  TORCH_CHECK(!is_coalescing(), "rehearse::monitoredBarrier: it blocks, so it cannot be coalesced");
  const bool limited = rank_ == 0 && options.timeout.count() != 0;
  return {OpType::BARRIER, limited ? options.timeout : c10d::kUnsetTimeout, /*async_op=*/false};
}

void DescribedBackend::require_start_of_coalescing() const {
  refuse_in_capture("startCoalescing()");
  TORCH_CHECK(!is_coalescing(), "rehearse::startCoalescing: called twice without endCoalescing()");
}

void DescribedBackend::require_end_of_coalescing() const {
  TORCH_CHECK(is_coalescing(), "rehearse::endCoalescing: there was no startCoalescing()");
}

auto DescribedBackend::options_or_named(const c10::intrusive_ptr<Options>& given, const std::string& name)
    -> c10::intrusive_ptr<Options> {
  auto options = given != nullptr ? c10::make_intrusive<Options>(*given) : getBackendOptions();
  if (given == nullptr || options->group_name.empty()) options->group_name = name;
  return options;
}

auto DescribedBackend::getBackendOptions() -> c10::intrusive_ptr<Options> {
  auto options = c10::make_intrusive<Options>(getBackendName(), timeout_);
  options->group_name = identity().name;
  options->group_desc = getGroupDesc();
  for (const int rank : identity().ranks) options->global_ranks_in_group.push_back(static_cast<std::uint64_t>(rank));
  return options;
}

auto DescribedBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) -> WorkPtr {
  return call(
      {OpType::BROADCAST, options.timeout, options.asyncOp},
      [&](Operation& operation) { describer(*this).broadcast(tensors, options, operation); },
      [&] { return again(&c10d::Backend::broadcast, tensors, options); });
}

auto DescribedBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) -> WorkPtr {
  return call(
      {allreduces_sparse(tensors) ? OpType::_ALLREDUCE_SPARSE : OpType::ALLREDUCE, options.timeout, options.asyncOp},
      [&](Operation& operation) { describer(*this).allreduce(tensors, options, operation); },
      [&] { return again(&c10d::Backend::allreduce, tensors, options); });
}

auto DescribedBackend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) -> WorkPtr {
  return allreduce(tensors, options);
}

auto DescribedBackend::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options)
    -> WorkPtr {
  return call(
      {OpType::ALLREDUCE_COALESCED, options.timeout, options.asyncOp},
      [&](Operation& operation) { describer(*this).allreduce_coalesced(tensors, options, operation); },
      [&] { return again(&c10d::Backend::allreduce_coalesced, tensors, options); });
}

auto DescribedBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) -> WorkPtr {
  return call(
      {OpType::REDUCE, options.timeout, options.asyncOp},
      [&](Operation& operation) { describer(*this).reduce(tensors, options, operation); },
      [&] { return again(&c10d::Backend::reduce, tensors, options); });
}

auto DescribedBackend::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options)
    -> WorkPtr {
  return call(
      {OpType::ALLGATHER, options.timeout, options.asyncOp},
      [&](Operation& operation) { describer(*this).allgather(outputs, inputs, operation); },
      [&] { return again(&c10d::Backend::allgather, outputs, inputs, options); });
}

auto DescribedBackend::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options)
    -> WorkPtr {
  return call(
      {OpType::_ALLGATHER_BASE, options.timeout, options.asyncOp},
      [&](Operation& operation) { describer(*this).allgather_base(output, input, operation); },
      [&] { return again(&c10d::Backend::_allgather_base, output, input, options); });
}

auto DescribedBackend::allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options)
    -> WorkPtr {
  return call(
      {OpType::ALLGATHER_COALESCED, options.timeout, options.asyncOp},
      [&](Operation& operation) { describer(*this).allgather_coalesced(outputs, inputs, operation); },
      [&] { return again(&c10d::Backend::allgather_coalesced, outputs, inputs, options); });
}

auto DescribedBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                       const c10d::AllgatherOptions& options) -> WorkPtr {
  return call(
      {OpType::COALESCED, options.timeout, options.asyncOp},
      [&](Operation& operation) { describer(*this).allgather_into_tensor_coalesced(outputs, inputs, operation); },
      [&] { return again(&c10d::Backend::allgather_into_tensor_coalesced, outputs, inputs, options); });
}

auto DescribedBackend::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) -> WorkPtr {
  return call(
      {OpType::GATHER, options.timeout, options.asyncOp},
      [&](Operation& operation) { describer(*this).gather(outputs, inputs, options, operation); },
      [&] { return again(&c10d::Backend::gather, outputs, inputs, options); });
}

auto DescribedBackend::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) -> WorkPtr {
  return call(
      {OpType::SCATTER, options.timeout, options.asyncOp},
      [&](Operation& operation) { describer(*this).scatter(outputs, inputs, options, operation); },
      [&] { return again(&c10d::Backend::scatter, outputs, inputs, options); });
}

auto DescribedBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options)
    -> WorkPtr {
  return call(
      {OpType::REDUCE_SCATTER, options.timeout, options.asyncOp},
      [&](Operation& operation) { describer(*this).reduce_scatter(outputs, inputs, options, operation); },
      [&] { return again(&c10d::Backend::reduce_scatter, outputs, inputs, options); });
}

auto DescribedBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                            const c10d::ReduceScatterOptions& options) -> WorkPtr {
  return call(
      {OpType::_REDUCE_SCATTER_BASE, options.timeout, options.asyncOp},
      [&](Operation& operation) { describer(*this).reduce_scatter_base(output, input, options, operation); },
      [&] { return again(&c10d::Backend::_reduce_scatter_base, output, input, options); });
}

auto DescribedBackend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                       const c10d::ReduceScatterOptions& options) -> WorkPtr {
  return call(
      {OpType::COALESCED, options.timeout, options.asyncOp},
      [&](Operation& operation) {
        describer(*this).reduce_scatter_tensor_coalesced(outputs, inputs, options, operation);
      },
      [&] { return again(&c10d::Backend::reduce_scatter_tensor_coalesced, outputs, inputs, options); });
}

auto DescribedBackend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                                     std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options)
    -> WorkPtr {
  return call(
      {OpType::ALLTOALL_BASE, options.timeout, options.asyncOp},
      [&](Operation& operation) {
        describer(*this).alltoall_base(output, input, output_splits, input_splits, operation);
      },
      [&] { return again(&c10d::Backend::alltoall_base, output, input, output_splits, input_splits, options); });
}

auto DescribedBackend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) -> WorkPtr {
  return call(
      {OpType::ALLTOALL, options.timeout, options.asyncOp},
      [&](Operation& operation) { describer(*this).alltoall(outputs, inputs, operation); },
      [&] { return again(&c10d::Backend::alltoall, outputs, inputs, options); });
}

void DescribedBackend::require_allowed(OpType type) const {
  refuse_in_capture("an operation of a c10d::Backend");
  operators::refuse_in_lone_code(name_of(type), identity().name);
}

auto DescribedBackend::point_to_point(OpType type, Tensors& tensors, int peer, int tag,
                                      c10::function_ref<Replay()> replay) -> WorkPtr {
  const auto describe = [&](Operation& operation) {
    describer(*this).point_to_point(tensors, peer, tag, is_coalescing(), operation);
  };
  return call({type}, describe, replay);
}

auto DescribedBackend::send(Tensors& tensors, int destination, int tag) -> WorkPtr {
  return point_to_point(OpType::SEND, tensors, destination, tag,
                        [&] { return again(&c10d::Backend::send, tensors, destination, tag); });
}

auto DescribedBackend::recv(Tensors& tensors, int source, int tag) -> WorkPtr {
  return point_to_point(OpType::RECV, tensors, source, tag,
                        [&] { return again(&c10d::Backend::recv, tensors, source, tag); });
}

auto DescribedBackend::recvAnysource(Tensors& tensors, int tag) -> WorkPtr {
  return point_to_point(OpType::RECVANYSOURCE, tensors, -1, tag, [&]() -> Replay {
    return [=](c10d::Backend& to, int source) mutable {
      return source >= 0 ? to.recv(tensors, source, tag) : to.recvAnysource(tensors, tag);
    };
  });
}

auto DescribedBackend::barrier(const c10d::BarrierOptions& options) -> WorkPtr {
  return call(
      {OpType::BARRIER, options.timeout, options.asyncOp}, [](Operation&) {},
      [&] { return again(&c10d::Backend::barrier, options); });
}

}  // namespace rehearse::comm
