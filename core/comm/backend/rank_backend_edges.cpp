// SPDX-License-Identifier: BSD-3-Clause
// The operations of RankBackend in which each pair of ranks has its own part: all-to-all, sends and receives, and the
// monitored barrier.
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/comm/errors.h>
#include <rehearse/comm/rank_backend.h>
#include <rehearse/exec/this_rank.h>

#include "comm/call/argument_checks.h"
#include "comm/call/fingerprint.h"
#include "comm/group/group_state.h"
#include "comm/work/coalesced_work.h"
#include "comm/work/work_observer.h"

namespace rehearse::comm {
namespace {

using c10d::OpType;
using Splits = c10::SmallVector<std::int64_t, 0>;

// Splits along dimension 0 as elements; no splits: equal ones.
void set_splits(const ArgumentChecks& check, const std::vector<std::int64_t>& rows, const at::Tensor& tensor, int size,
                Splits& splits) {
  const auto all_rows = tensor.dim() > 0 ? tensor.size(0) : 0;
  const auto row = all_rows > 0 ? tensor.numel() / all_rows : 0;
  if (rows.empty()) {
    if (all_rows % size != 0) check.fail("Tensor's dim 0 does not divide equally across group size");
    splits.assign(static_cast<std::size_t>(size), all_rows / size * row);
    return;
  }
  if (rows.size() != static_cast<std::size_t>(size)) check.fail("Number of tensor splits not equal to group size");
  std::int64_t sum = 0;
  for (const auto count : rows) {
    if (count < 0) check.fail(fmt::format("a split size is negative: {}", count));
    sum += count;
    splits.push_back(count * row);
  }
  if (sum != all_rows) check.fail("Split sizes doesn't match total dim 0 size");
}

// What a rank sends to itself it must also expect from itself.
void check_own_edge(const ArgumentChecks& check, const Operation& call, int rank) {
  const auto sent = elements_to(call, rank);
  const auto expected = elements_from(call, rank);
  if (sent == expected) return;
  check.fail(fmt::format("this rank sends {} elements to itself but expects {}", sent, expected));
}

const at::Tensor& message(const ArgumentChecks& check, const std::vector<at::Tensor>& tensors) {
  if (tensors.size() != 1) check.fail("takes a single tensor");
  check.dense(tensors.front());
  check.contiguous(tensors.front());
  return tensors.front();
}

// Among coalesced calls, as with NCCL, the receive may be there as well; alone it cannot.
void check_peer(const ArgumentChecks& check, const char* kind, int peer, int rank, int size, bool coalesced) {
  if (peer < 0 || peer >= size) check.fail(fmt::format("invalid {} rank: {}", kind, peer));
  if (peer == rank && !coalesced) {
    check.fail(fmt::format("invalid {} rank: {} is the rank of the calling process itself", kind, peer));
  }
}

// A monitored barrier that has no time at all: it fails for rank 0, whoever is there, and so for the others.
void fail_at_once(GroupState& group, const c10::intrusive_ptr<RankWork>& barrier) {
  group.check(*barrier);
  group.collectives().fail_monitored_barrier_of(barrier->rank());
  group.submit(barrier);
  if (barrier->incomplete()) barrier->wait();  // the world ends
  exec::this_rank::note_given_up(WorkObserver(*barrier));
  group.member(barrier->rank()).note(c10d::ErrorType::TIMEOUT);
  throw TimeoutError(
      "Rank 0 timed out in monitoredBarrier after 0 ms.\nNo ranks successfully processed in monitoredBarrier.",
      group.identity().name, barrier->getSequencenumber(), {});
}

void check_tag(const ArgumentChecks& check, int tag) {
  if (tag < 0) check.fail("Tag must be nonnegative");
}

}  // namespace

auto RankBackend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                                std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options)
    -> WorkPtr {
  const ArgumentChecks check("alltoall_base", size_);
  check.dense(output);
  check.dense(input);
  if (output.device() != input.device()) {
    check.fail("output tensor and input tensor must be on the same type of device");
  }
  check.same_type(input, output, 0);
  check.same_format(input, output, 0);
  auto work = make(OpType::ALLTOALL_BASE, options.timeout, options.asyncOp);
  auto& call = work->operation;
  set_splits(check, input_splits, input, size_, call.input_splits);
  set_splits(check, output_splits, output, size_, call.output_splits);
  check_own_edge(check, call, rank_);
  call.inputs.push_back(input);
  call.outputs.push_back(output);
  return submit(std::move(work));
}

auto RankBackend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) -> WorkPtr {
  const ArgumentChecks check("alltoall", size_);
  for (const auto* const list : {&outputs, &inputs}) {
    if (list->size() != static_cast<std::size_t>(size_)) {
      check.fail(fmt::format("invalid {} tensor list (expected length {}, got {})",
                             list == &outputs ? "output" : "input", size_, list->size()));
    }
    for (const auto& tensor : *list) check.dense(tensor);
    check.same_type(inputs.front(), *list);
    for (std::size_t i = 0; i < list->size(); ++i) check.same_format(inputs.front(), (*list)[i], i);
  }
  auto work = make(OpType::ALLTOALL, options.timeout, options.asyncOp);
  auto& call = work->operation;
  call.inputs.assign(inputs.begin(), inputs.end());
  call.outputs.assign(outputs.begin(), outputs.end());
  check_own_edge(check, call, rank_);
  return submit(std::move(work));
}

auto RankBackend::point_to_point(OpType type, const char* op, Tensors& tensors, int peer, int tag) -> WorkPtr {
  const ArgumentChecks check(op, size_);
  const auto& tensor = message(check, tensors);
  if (type != OpType::RECVANYSOURCE) {
    check_peer(check, type == OpType::SEND ? "destination" : "source", peer, rank_, size_, coalesced_ != nullptr);
  }
  check_tag(check, tag);
  auto work = make(type, c10d::kUnsetTimeout);
  auto& call = work->operation;
  call.peer = peer;
  call.tag = tag;
  (type == OpType::SEND ? call.inputs : call.outputs).push_back(tensor);
  return submit(std::move(work));
}

auto RankBackend::send(Tensors& tensors, int destination, int tag) -> WorkPtr {
  return point_to_point(OpType::SEND, "send", tensors, destination, tag);
}

auto RankBackend::recv(Tensors& tensors, int source, int tag) -> WorkPtr {
  return point_to_point(OpType::RECV, "recv", tensors, source, tag);
}

auto RankBackend::recvAnysource(Tensors& tensors, int tag) -> WorkPtr {
  return point_to_point(OpType::RECVANYSOURCE, "recv_any_source", tensors, -1, tag);
}

void RankBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  TORCH_CHECK(coalesced_ == nullptr, "rehearse::monitoredBarrier: it blocks, so it cannot be coalesced");
  const bool limited = rank_ == 0 && options.timeout.count() != 0;
  auto work = make(OpType::BARRIER, limited ? options.timeout : c10d::kUnsetTimeout, /*async_op=*/false);
  work->operation.tag = Operation::kMonitoredBarrier;
  // Gloo looks for the time that is left before it waits for a rank; where it waits for all, 0 is no limit.
  if (rank_ == 0 && size_ > 1 && options.timeout.count() == 0 && !wait_all_ranks) return fail_at_once(*group_, work);
  group_->submit(work);
  if (rank_ != 0) {
    work->wait();
    return;
  }
  try {
    work->wait();
  } catch (const TimeoutError& error) {
    group_->collectives().give_up_monitored_barrier(*work, error, wait_all_ranks);
  }
}

}  // namespace rehearse::comm
