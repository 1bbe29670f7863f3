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

// The back end of a rank that is a fiber, over any fabric. Passes each call to the group, which matches the call with
// those of other ranks. Communicators makes it.
//
// Blocking: monitoredBarrier(), merge(), waitForPendingWorks() and shutdown() block; a collective that differs from the
// other ranks' call blocks until they have voted (at most a second of virtual time). Fibers: use it only in its own
// rank, which is checked. Errors besides those of DescribedBackend: MismatchError if other ranks made a different call
// at this position; CommError after the end of the world.
class RankBackend final : public DescribedBackend {
 public:
  // `rank`: the owner's rank in the group.
  RankBackend(c10::intrusive_ptr<GroupState> group, int rank, std::chrono::milliseconds timeout);
  ~RankBackend() override;

  void extend_timeout_once(std::chrono::milliseconds duration) override;

  // Blocks until every rank of the group has called it. After the timeout, rank 0 throws TimeoutError, which names the
  // first missing rank, or all of them with `wait_all_ranks`. The others then fail with CommError. As in Gloo, a
  // timeout of 0 ms expires at once, even if all ranks are there; with `wait_all_ranks`, 0 means the group's timeout.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  // Between startCoalescing() and endCoalescing(), calls are only checked and gathered. All of them return the same
  // Work; waits for this Work throw before endCoalescing() has submitted the calls. The collectives become one call
  // that all ranks must coalesce alike. Then follow the sends and receives in order, each alone or all as one unit
  // (CommunicatorOptions::coalesced_as_one); a rank may send to itself. endCoalescing() returns the same Work, or null
  // if there was no call (as in NCCL). A second startCoalescing(), and an endCoalescing() without a start, throw
  // c10::Error.
  void startCoalescing() override;
  WorkPtr endCoalescing() override;

  // The number of collectives that this rank has called on the group. All ranks start from 0, so setting it does
  // nothing.
  std::uint64_t getSequenceNumberForGroup() override;
  void setSequenceNumberForGroup() override {}

  // Makes a group of some of this group's ranks; `options` gives the new group's name and timeout. Returns null on
  // ranks that are not in `ranks`; those ranks need not call it. Each member must call it, but may make other calls
  // before. The n-th splits of the members into the same ranks under the same name make one group. The store is not
  // used.
  BackendPtr split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                   const c10::intrusive_ptr<Options>& options) override;

  // Makes a group of `size` ranks of any groups of the world, which find each other through `store`. `rank`: the
  // caller's rank in the new group. Blocks until all `size` ranks have called merge(), or until the store's timeout.
  BackendPtr merge(const c10::intrusive_ptr<c10d::Store>& store, const c10::intrusive_ptr<Options>& options,
                   const int& rank, const int& size) override;

  // Like split(), for all ranks of this group except the given ones. The given ranks must not call it. `flags`: 0, or
  // kShrinkAbort to abort this group first. Options may be null; the name is then "<this>:shrink:[remaining ranks]".
  BackendPtr shrink(const std::vector<std::int64_t>& ranks_to_exclude, int flags,
                    const c10::intrusive_ptr<Options>& options) override;

  BackendPtr companion(const std::string& name) override;

  // Fails this rank's calls in flight with CommError, and refuses later ones. Other ranks then miss this one.
  void abort() override;

  // Waits for this rank's calls in flight. Later calls throw CommError.
  void shutdown() override;

  // SUCCESS, or the first error of a call of this rank: TIMEOUT, or COMM_ERROR after an abort, a closed connection, a
  // failed transfer or a timeout of another rank.
  c10d::ErrorType getError() override;

  // Runs `hook` on a helper fiber of this rank after each of the rank's calls that succeeds, in order. May be called
  // once.
  void registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&& hook) override;

  // Waits until this rank's calls have ended and the hook has run for those that succeeded. Throws TimeoutError.
  void waitForPendingWorks() override;

  void enableCollectivesTiming() override {}  // does nothing: durations are always measured

  const GroupIdentity& identity() const noexcept override;
  void name_payload(const at::Tensor& tensor, const std::string& name) override;
  void forget_payload(const c10::TensorImpl* tensor) noexcept override;

 private:
  WorkPtr call(const Called& called, Describe describe, c10::function_ref<Replay()> replay) override;
  bool is_coalescing() const noexcept override { return coalesced_ != nullptr; }
  c10::intrusive_ptr<RankWork> make(const Called& called);
  void submit_to_group(const c10::intrusive_ptr<RankWork>& work);
  // Out of line to keep the frame of call() small: the stack of each rank has such a frame (see WorkWaiters::wait()).
  [[gnu::cold, gnu::noinline]] WorkPtr gather(c10::intrusive_ptr<RankWork> work);
  BackendPtr derive(const char* call, const std::vector<int>& global_ranks, const Options& options,
                    const GroupIdentity* parent) const;

  const c10::intrusive_ptr<GroupState> group_;
  std::unique_ptr<TimeoutExtension<RankWork>> extension_;  // null until first used
  std::map<std::string, BackendPtr> companions_;
  // Between startCoalescing() and endCoalescing(): the calls in order, the stack of each if call sites are captured,
  // and the work that they all return.
  std::vector<c10::intrusive_ptr<RankWork>> gathered_;
  std::vector<std::vector<void*>> gathered_at_;
  c10::intrusive_ptr<CoalescedWork> coalesced_;
};

}  // namespace rehearse::comm
