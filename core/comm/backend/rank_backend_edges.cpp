// SPDX-License-Identifier: BSD-3-Clause
// The operations of RankBackend in which each pair of ranks has its own part: all-to-all, sends and receives, and the
// monitored barrier.
#include <utility>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/comm/rank_backend.h>
#include <rehearse_internal/exec/this_rank.h>

#include "comm/call/call_describer.h"
#include "comm/group/group_state.h"
#include "comm/work/coalesced_work.h"
#include "comm/work/work_observer.h"

namespace rehearse::comm {
namespace {

using c10d::OpType;

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

}  // namespace

auto RankBackend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                                std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options)
    -> WorkPtr {
  auto work = make(OpType::ALLTOALL_BASE, options.timeout, options.asyncOp);
  describe().alltoall_base(output, input, output_splits, input_splits, work->operation);
  return submit(std::move(work));
}

auto RankBackend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) -> WorkPtr {
  auto work = make(OpType::ALLTOALL, options.timeout, options.asyncOp);
  describe().alltoall(outputs, inputs, work->operation);
  return submit(std::move(work));
}

auto RankBackend::point_to_point(OpType type, Tensors& tensors, int peer, int tag) -> WorkPtr {
  auto work = make(type, c10d::kUnsetTimeout);
  describe().point_to_point(tensors, peer, tag, coalesced_ != nullptr, work->operation);
  return submit(std::move(work));
}

auto RankBackend::send(Tensors& tensors, int destination, int tag) -> WorkPtr {
  return point_to_point(OpType::SEND, tensors, destination, tag);
}

auto RankBackend::recv(Tensors& tensors, int source, int tag) -> WorkPtr {
  return point_to_point(OpType::RECV, tensors, source, tag);
}

auto RankBackend::recvAnysource(Tensors& tensors, int tag) -> WorkPtr {
  return point_to_point(OpType::RECVANYSOURCE, tensors, -1, tag);
}

void RankBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  TORCH_CHECK(coalesced_ == nullptr, "rehearse::monitoredBarrier: it blocks, so it cannot be coalesced");
  const bool limited = rank_ == 0 && options.timeout.count() != 0;
  auto work = make(OpType::BARRIER, limited ? options.timeout : c10d::kUnsetTimeout, /*async_op=*/false);
  work->operation.tag = Operation::kMonitoredBarrier;
  // Gloo looks for the time that is left before it waits for a rank; where it waits for all, 0 is no limit.
  if (rank_ == 0 && size_ > 1 && options.timeout.count() == 0 && !wait_all_ranks) return fail_at_once(*group_, work);
  submit_to_group(work);
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
