// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <c10/util/FunctionRef.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// The back end behind a rank's c10d::ProcessGroup (type CUSTOM). Here is the one place that knows the signatures of
// c10d's calls: each checks its arguments, becomes an Operation, and goes to call(), which is all that a kind of back
// end adds. RankBackend serves worlds of fibers, a checked back end ranks that are processes, LoneBackend one rank
// alone. Libraries above it (DistributedDataParallel, compile()) find by a dynamic_cast what else they can ask for.
//
// Tensor lists hold one tensor a rank, but for the coalesced operations. What each method of c10d::Backend is here, and
// which test holds it: docs/C10D.md.
//
// Fibers, threads and blocking: as call(). Errors: c10::Error for arguments that make no sense, with the texts of
// c10d's own back ends; then what call() throws.
class DescribedBackend : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<Tensors>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

  // `timeout`: of calls that bring none.
  DescribedBackend(int rank, int size, std::chrono::milliseconds timeout)
      : c10d::Backend(rank, size), timeout_(timeout) {}

  const std::string getBackendName() const override { return "rehearse"; }
  // A copy: changing it changes nothing here.
  c10::intrusive_ptr<Options> getBackendOptions() final;
  void setTimeout(std::chrono::milliseconds timeout) final { timeout_ = timeout; }
  bool supportsSplitting() const final { return true; }
  bool supportsCoalescing() const final { return true; }
  bool supportsShrinking() const final { return true; }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) final;
  // A sparse COO tensor too, on the CPU: the sum of all ranks' tensors, coalesced, takes the place of its values.
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) final;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) final;  // the same, as Gloo's
  // As if each tensor were reduced by a call of its own, but that all are read before any is written (one that is there
  // twice is reduced once); `tensors` of one dtype and device.
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) final;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) final;
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) final;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) final;
  // outputs[r][i] becomes rank r's inputs[i].
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) final;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) final;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) final;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) final;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) final;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) final;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) final;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) final;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) final;
  WorkPtr send(Tensors& tensors, int destination, int tag) final;
  WorkPtr recv(Tensors& tensors, int source, int tag) final;
  WorkPtr recvAnysource(Tensors& tensors, int tag) final;
  WorkPtr barrier(const c10d::BarrierOptions& options) final;

  static constexpr int kShrinkAbort = 1;  // a flag of shrink(), as NCCL_SHRINK_ABORT

  virtual const GroupIdentity& identity() const noexcept = 0;

  // As Communicators::name_payload() and forget_payload() for this rank; the second does nothing once the world is
  // over.
  virtual void name_payload(const at::Tensor& tensor, const std::string& name) = 0;
  virtual void forget_payload(const c10::TensorImpl* tensor) noexcept = 0;

  // How many models this rank has made on the group, with this one: all ranks make theirs in the same order.
  int count_model() noexcept { return ++models_; }

  // A group of the same ranks under that name, whose calls have an order of their own: for what a library sends beside
  // its user's calls. One for each group and name, made when a rank first asks for it; always the same object here. Not
  // a call that all ranks must make: nobody is told of one that does not.
  virtual BackendPtr companion(const std::string& name) = 0;

  // c10d's ephemeral timeout (torch's _add_ephemeral_timeout_for_all_pgs(), which NCCL alone has): this rank's next
  // operation, and those that it begins before that one has ended, get `duration` on top of their time limits. A second
  // call adds to the first. Throws c10::Error for durations below 0.
  virtual void extend_timeout_once(std::chrono::milliseconds duration) = 0;

 protected:
  // What is known of a call before its arguments are looked at.
  struct Called {
    c10d::OpType type;
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;  // what the caller gave; unset: that of the group
    bool async_op = true;
  };

  // Checks the arguments and fills in what the call is, but for its type, timeout and label. Throws c10::Error.
  using Describe = c10::function_ref<void(Operation& call)>;

  // Makes the same call of another back end. It keeps the arguments alive. `source`: of a receive from any rank, the
  // one whose message it takes (within the group); -1: as the call says.
  using Replay = std::function<WorkPtr(c10d::Backend& to, int source)>;

  // Throws in a captured function, which would not have the call in its graph, and in code that no other rank runs.
  void require_allowed(c10d::OpType type) const;

  // One call of the user's. A back end below which there is another asks for the `replay`.
  virtual WorkPtr call(const Called& called, Describe describe, c10::function_ref<Replay()> replay) = 0;

  // Between startCoalescing() and endCoalescing(): messages to the rank itself are allowed.
  virtual bool is_coalescing() const noexcept = 0;

  // monitoredBarrier() as a call, to be tagged Operation::kMonitoredBarrier. Rank 0 alone has a time limit of the
  // caller's. Throws c10::Error between startCoalescing() and endCoalescing(), because it blocks.
  Called monitored_barrier(const c10d::BarrierOptions& options) const;
  // Rank 0 fails at once, whoever is there. Gloo looks for the time that is left before it waits for a rank; where it
  // waits for all, 0 is no limit.
  bool is_barrier_without_time(const c10d::BarrierOptions& options, bool wait_all_ranks) const noexcept {
    return rank_ == 0 && size_ > 1 && options.timeout.count() == 0 && !wait_all_ranks;
  }

  // Throw c10::Error for a second startCoalescing(), or one in a captured function, and for an endCoalescing() without
  // one.
  void require_start_of_coalescing() const;
  void require_end_of_coalescing() const;

  // Options of a group made from this one: a copy of those given, or this group's; without a name of their own they get
  // `name`.
  c10::intrusive_ptr<Options> options_or_named(const c10::intrusive_ptr<Options>& given, const std::string& name);

  std::chrono::milliseconds timeout() const noexcept { return timeout_; }
  std::chrono::milliseconds timeout_of(const Called& called) const noexcept {
    return called.timeout == c10d::kUnsetTimeout ? timeout_ : called.timeout;
  }

 private:
  WorkPtr point_to_point(c10d::OpType type, Tensors& tensors, int peer, int tag, c10::function_ref<Replay()> replay);

  std::chrono::milliseconds timeout_;
  int models_ = 0;
};

}  // namespace rehearse::comm
