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
#include <rehearse_internal/libtorch/backend.h>

namespace rehearse::comm {

// The back end behind a rank's c10d::ProcessGroup (type CUSTOM). Each function of c10d::Backend checks its arguments,
// makes an Operation of them, and passes it to call(), which each kind of back end implements. RankBackend serves
// worlds of fibers, CheckedBackend ranks that are processes, LoneBackend one rank alone. Libraries above it
// (DistributedDataParallel, compile()) find its further functions by a dynamic_cast.
//
// A list of tensors has one tensor, or one for each rank; only coalesced operations take any number. docs/C10D.md says
// what each method of c10d::Backend does here, and which test covers it.
//
// Fibers, threads and blocking: as call(). Errors: c10::Error for arguments that make no sense, with the texts of
// c10d's own back ends; then whatever call() throws.
class DescribedBackend : public libtorch::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<Tensors>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

  // `timeout`: the time limit of calls that give none themselves.
  DescribedBackend(int rank, int size, std::chrono::milliseconds timeout);

  const std::string getBackendName() const override { return "rehearse"; }
  // A copy: changing it has no effect here.
  c10::intrusive_ptr<Options> getBackendOptions() final;
  void setTimeout(std::chrono::milliseconds timeout) final { timeout_ = timeout; }
  bool supportsSplitting() const final { return true; }
  bool supportsCoalescing() const final { return true; }
  bool supportsShrinking() const final { return true; }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) final;
  // Also takes a sparse COO tensor, on the CPU: replaces its values by the coalesced sum of all ranks' tensors.
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) final;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) final;  // the same, as in Gloo
  // Reduces each tensor as a separate call would, but reads all tensors before it writes any. A tensor that occurs
  // twice is reduced once. `tensors` must have one dtype and device.
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

  // Like Communicators::name_payload() and forget_payload() for this rank. forget_payload() does nothing after the
  // world has ended.
  virtual void name_payload(const at::Tensor& tensor, const std::string& name) = 0;
  virtual void forget_payload(const c10::TensorImpl* tensor) noexcept = 0;

  // Call it when this rank makes a model on the group. Returns the model's number, from 1. All ranks make their models
  // in the same order.
  int count_model() noexcept { return ++models_; }

  // A second group of the same ranks, with its own order of calls, for what a library sends besides its user's calls.
  // A group has one companion for each name, made when a rank first requests it. Repeated calls return the same object.
  // It is no error if some ranks never call this.
  virtual BackendPtr companion(const std::string& name) = 0;

  // c10d's ephemeral timeout (torch's _add_ephemeral_timeout_for_all_pgs(), which only NCCL supports): adds `duration`
  // to the time limit of this rank's next operation, and to those of the operations that the rank starts before the
  // next one has ended. Repeated calls add up. Throws c10::Error for negative durations.
  virtual void extend_timeout_once(std::chrono::milliseconds duration) = 0;
  // An override of c10d's function since LibTorch 2.14.
  void addEphemeralTimeout(const std::chrono::milliseconds& duration) { extend_timeout_once(duration); }

 protected:
  // The facts of a call that do not depend on its arguments.
  struct Called {
    c10d::OpType type;
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;  // as the caller gave it; unset: the group's
    bool async_op = true;
  };

  // Checks the arguments and fills in the operation, except for its type, timeout and label. Throws c10::Error.
  using Describe = c10::function_ref<void(Operation& call)>;

  // Repeats the call on another back end. Keeps the arguments alive. `source`: for a receive from any rank, the rank in
  // the group whose message it takes; -1: as in the call.
  using Replay = std::function<WorkPtr(c10d::Backend& to, int source)>;

  // Throws if the caller's code is being captured, because the graph would lack the call. Also throws in code that only
  // one rank runs, such as the loss function of RankContext::check_gradients().
  void require_allowed(c10d::OpType type) const;

  // Carries out one call of the user's. Back ends in front of another one use `replay`.
  virtual WorkPtr call(const Called& called, Describe describe, c10::function_ref<Replay()> replay) = 0;

  // True between startCoalescing() and endCoalescing(). Then a rank may send messages to itself.
  virtual bool is_coalescing() const noexcept = 0;

  // monitoredBarrier() as a call; the caller must tag it Operation::kMonitoredBarrier. Only rank 0 has the caller's
  // time limit. Throws c10::Error between startCoalescing() and endCoalescing(), because it blocks.
  Called monitored_barrier(const c10d::BarrierOptions& options) const;
  // True if rank 0 must fail at once, even if all ranks are there. Gloo computes the remaining time before it waits for
  // each rank, so 0 ms is over at once; if Gloo waits for all ranks, 0 means the group's timeout.
  bool is_barrier_without_time(const c10d::BarrierOptions& options, bool wait_all_ranks) const noexcept {
    return rank_ == 0 && size_ > 1 && options.timeout.count() == 0 && !wait_all_ranks;
  }

  // require_start_of_coalescing() throws c10::Error for a second startCoalescing(), and the capture's error if the
  // caller's code is being captured. require_end_of_coalescing() throws c10::Error for an endCoalescing() without a
  // start.
  void require_start_of_coalescing() const;
  void require_end_of_coalescing() const;

  // The options of a group that is derived from this one: a copy of `given` or, if it is null, of this group's options.
  // If `given` is null or has no name, the options get `name`.
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
