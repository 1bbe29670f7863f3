// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <c10/util/intrusive_ptr.h>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/comm/mismatch.h>

#include "comm/agree/collective_calls.h"
#include "comm/agree/creation_calls.h"
#include "comm/matcher/services.h"
#include "comm/work/rank_work.h"

namespace rehearse::comm {

// Calls that should be equal and are not. The world will end with a mismatch. Before it does, ranks that are still on
// their way may arrive and vote: if more than half of the ranks agree, the report can name the other ranks.
class PendingMismatch {
 public:
  explicit PendingMismatch(const Services& services) : services_(services) {}
  virtual ~PendingMismatch() = default;

  // Only the first call that disagrees calls this; later calls wait for the end of the world. Blocks the rank until all
  // ranks have arrived, for at most kVotePeriod of virtual time. Then ends the world and throws MismatchError. If the
  // world ends earlier, reports what is known by then and throws RankAborted.
  [[noreturn]] void settle(const exec::Observer& observer);

  // Call it when a call has arrived and voted.
  void note_arrival() {
    if (all_have_come()) queue_.notify_all();
  }

 private:
  class VotePeriod;

  virtual bool all_have_come() const noexcept = 0;
  virtual Mismatch mismatch() const = 0;
  void wait_for_the_others(const exec::Observer& observer);

  const Services& services_;
  exec::WaitQueue queue_;
};

// A mismatch between calls of one collective.
class PendingCallMismatch final : public PendingMismatch {
 public:
  PendingCallMismatch(const Services& services, const CollectiveCalls& calls)
      : PendingMismatch(services), calls_(calls) {}

  // Keeps the work alive, because the calls that the report compares refer to it.
  void keep(c10::intrusive_ptr<RankWork> work) { works_.push_back(std::move(work)); }

 private:
  bool all_have_come() const noexcept override { return calls_.all_have_voted(); }
  Mismatch mismatch() const override { return calls_.mismatch(); }

  const CollectiveCalls& calls_;
  Works works_;
};

// A mismatch between calls of one new_group().
class PendingCreationMismatch final : public PendingMismatch {
 public:
  PendingCreationMismatch(const Services& services, const CreationCalls& calls)
      : PendingMismatch(services), calls_(calls) {}

 private:
  bool all_have_come() const noexcept override { return calls_.vote().all_have_come(); }
  Mismatch mismatch() const override { return calls_.mismatch(); }

  const CreationCalls& calls_;
};

}  // namespace rehearse::comm
