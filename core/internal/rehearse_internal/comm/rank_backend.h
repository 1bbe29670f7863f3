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

class CoalescedWork;
class GroupState;
class RankWork;
template <class EachWork>
class TimeoutExtension;

// The back end of a rank that is a fiber, whatever fabric is below it: it hands each call to the group, which matches
// it with the other ranks' calls. Over fakes::FakeFabric it is the fake process group of a simulation. Made by
// Communicators.
//
// Blocking: monitoredBarrier(), merge(), waitForPendingWorks() and shutdown(); any collective that differs from the
// other ranks' call, until they have voted (a second of virtual time at most). Fibers: use it in the rank that
// it belongs to (checked). Errors: c10::Error for arguments that make no sense, with the texts of c10d's own back ends;
// MismatchError when the call is not the one that other ranks made at this place; CommError once the world has ended.
class RankBackend final : public DescribedBackend {
 public:
  // `rank` within the group.
  RankBackend(c10::intrusive_ptr<GroupState> group, int rank, std::chrono::milliseconds timeout);
  ~RankBackend() override;

  void extend_timeout_once(std::chrono::milliseconds duration) override;

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
  WorkPtr call(const Called& called, Describe describe, c10::function_ref<Replay()> replay) override;
  bool is_coalescing() const noexcept override { return coalesced_ != nullptr; }
  c10::intrusive_ptr<RankWork> make(const Called& called);
  void submit_to_group(const c10::intrusive_ptr<RankWork>& work);
  // Out of line: the frame of call() lies on the stack of each rank, as WorkWaiters::wait()'s does.
  [[gnu::cold, gnu::noinline]] WorkPtr gather(c10::intrusive_ptr<RankWork> work);
  BackendPtr derive(const char* call, const std::vector<int>& global_ranks, const Options& options,
                    const GroupIdentity* parent) const;

  const c10::intrusive_ptr<GroupState> group_;
  std::unique_ptr<TimeoutExtension<RankWork>> extension_;  // once it has been used
  std::map<std::string, BackendPtr> companions_;
  // Between startCoalescing() and endCoalescing(): the calls in order, and the work that all of them return.
  std::vector<c10::intrusive_ptr<RankWork>> gathered_;
  c10::intrusive_ptr<CoalescedWork> coalesced_;
};

}  // namespace rehearse::comm
