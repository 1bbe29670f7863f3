// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <rehearse_internal/comm/described_backend.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

class CallDescriber;
class CoalescedWork;
class GroupState;
class RankWork;
class TimeoutExtension;

// The back end behind a rank's c10d::ProcessGroup (type CUSTOM, name "rehearse"), whatever fabric is below
// it: it checks the arguments, describes the call as an Operation and hands it to the group, which matches it with
// the other ranks' calls. Made by Communicators.
//
// Tensor lists hold one tensor a rank, but for the coalesced operations. What each method of c10d::Backend is here, and
// which test holds it: docs/C10D.md.
//
// Blocking: monitoredBarrier(), merge(), waitForPendingWorks() and shutdown(); any collective that differs from the
// other ranks' call, until they have taken a side (a second of virtual time at most). Fibers: use it in the rank that
// it belongs to (checked). Errors: c10::Error for arguments that make no sense, with the texts of c10d's own back ends;
// MismatchError when the call is not the one that other ranks made at this place; CommError once the world has ended.
class RankBackend final : public DescribedBackend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

  // `rank` within the group.
  RankBackend(c10::intrusive_ptr<GroupState> group, int rank, std::chrono::milliseconds timeout);
  ~RankBackend() override;

  const std::string getBackendName() const override { return "rehearse"; }
  // A copy: changing it changes nothing here.
  c10::intrusive_ptr<Options> getBackendOptions() override;
  void setTimeout(std::chrono::milliseconds timeout) override;

  void extend_timeout_once(std::chrono::milliseconds duration) override;

  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  bool supportsShrinking() const override { return true; }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  // A sparse COO tensor too, on the CPU: the sum of all ranks' tensors, coalesced, takes the place of its values.
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;  // the same, as Gloo's
  // As if each tensor were reduced by a call of its own, but that all are read before any is written (one that is there
  // twice is reduced once); `tensors` of one dtype and device.
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  // outputs[r][i] becomes rank r's inputs[i].
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPtr send(Tensors& tensors, int destination, int tag) override;
  WorkPtr recv(Tensors& tensors, int source, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;

  // Blocks until every rank of the group has called it. Rank 0 gives up after the timeout and names the first rank
  // that is missing, or all of them (`wait_all_ranks`): TimeoutError. The others then fail with CommError. As Gloo's, a
  // timeout of 0 ms is over at once, whoever is there, or with `wait_all_ranks` that of the group.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  // Between the two, calls are only checked and gathered; all return the same Work, which cannot be waited for before
  // endCoalescing() has handed them on: the collectives as one that all ranks must coalesce alike, then sends and
  // receives in order, also to and from the rank itself, each alone or all as one unit
  // (CommunicatorOptions::coalesced_as_one). endCoalescing() returns that Work, null when nothing was called in between
  // (as NCCL's). Throws c10::Error when they do not come in pairs.
  void startCoalescing() override;
  WorkPtr endCoalescing() override;

  // How many collectives this rank has called on the group. There is nothing to agree on: all start from 0.
  std::uint64_t getSequenceNumberForGroup() override;
  void setSequenceNumberForGroup() override {}

  // A group of some of this group's ranks, named and timed by `options`; null on ranks that are not in `ranks`, which
  // need not call it. Members may do other things in between, but each must come; the n-th split into the same ranks
  // under the same name is one group. The store is not used.
  BackendPtr split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                   const c10::intrusive_ptr<Options>& options) override;

  // A group of `size` ranks of any groups of the world, which find each other through `store`: `rank` within it is
  // given. Blocks until all of them have come, or the store's timeout is over.
  BackendPtr merge(const c10::intrusive_ptr<c10d::Store>& store, const c10::intrusive_ptr<Options>& options,
                   const int& rank, const int& size) override;

  // split() into all ranks but those; they must not call it. `flags`: 0, or kShrinkAbort to abort this group first.
  // Options may be null: the name is then "<this>:shrink:[ranks that stay]".
  static constexpr int kShrinkAbort = 1;  // NCCL_SHRINK_ABORT
  BackendPtr shrink(const std::vector<std::int64_t>& ranks_to_exclude, int flags,
                    const c10::intrusive_ptr<Options>& options) override;

  BackendPtr companion(const std::string& name) override;

  // This rank's calls that are under way fail with CommError, later ones are refused; other ranks miss this one.
  void abort() override;

  // Waits for this rank's calls that are under way; later ones are refused with CommError.
  void shutdown() override;

  // Success, or the first error that a call of this rank met: a timeout or an abort.
  c10d::ErrorType getError() override;

  // `hook` runs on a helper fiber of this rank after each of its calls that completes, in order. Once.
  void registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&& hook) override;

  // Until this rank's calls are complete and the hook has run for each. Throws TimeoutError.
  void waitForPendingWorks() override;

  void enableCollectivesTiming() override {}  // virtual time is always kept: Work::getDuration()

  const GroupIdentity& identity() const noexcept override;
  void name_payload(const at::Tensor& tensor, const std::string& name) override;
  void forget_payload(const c10::TensorImpl* tensor) noexcept override;

 private:
  c10::intrusive_ptr<RankWork> make(c10d::OpType type, std::chrono::milliseconds timeout, bool async_op = true);
  WorkPtr submit(c10::intrusive_ptr<RankWork> work);
  void submit_to_group(const c10::intrusive_ptr<RankWork>& work);
  CallDescriber describe() const noexcept;
  WorkPtr point_to_point(c10d::OpType type, Tensors& tensors, int peer, int tag);
  // Those given, or this group's; without a name of their own they get `name`.
  c10::intrusive_ptr<Options> options_or_named(const c10::intrusive_ptr<Options>& given, const std::string& name);
  BackendPtr derive(const char* call, const std::vector<int>& global_ranks, const Options& options,
                    const GroupIdentity* parent) const;

  const c10::intrusive_ptr<GroupState> group_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<TimeoutExtension> extension_;  // once it has been used
  std::map<std::string, BackendPtr> companions_;
  c10::intrusive_ptr<CoalescedWork> coalesced_;  // between startCoalescing() and endCoalescing()
};

}  // namespace rehearse::comm
