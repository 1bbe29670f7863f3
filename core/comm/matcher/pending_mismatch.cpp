// SPDX-License-Identifier: BSD-3-Clause
#include "comm/matcher/pending_mismatch.h"

#include <utility>

#include <rehearse_internal/exec/timer_queue.h>

#include "comm/agree/vote.h"

namespace rehearse::comm {

// Ends the wait for the votes of the other ranks. A timeout of the wait itself would count as a rank that gives up.
class PendingMismatch::VotePeriod final : public exec::Timer {
 public:
  VotePeriod(exec::TimerQueue& timers, VirtualTime due, exec::WaitQueue& queue) : timers_(timers), queue_(queue) {
    timers_.arm(*this, due);
  }
  ~VotePeriod() override { timers_.cancel(*this); }

  bool over = false;

 private:
  Kind kind() const noexcept override { return Kind::limit; }
  void fire() override {
    over = true;
    queue_.notify_all();
  }

  exec::TimerQueue& timers_;
  exec::WaitQueue& queue_;
};

void PendingMismatch::settle(const exec::Observer& observer) {
  try {
    wait_for_the_others(observer);
  } catch (...) {
    services_.mismatches.report(mismatch());
    throw;
  }
  services_.mismatches.fail(mismatch());
}

void PendingMismatch::wait_for_the_others(const exec::Observer& observer) {
  const VotePeriod period(services_.timers(), services_.limit_now() + kVotePeriod, queue_);
  while (!all_have_come() && !period.over) queue_.wait(observer);
}

}  // namespace rehearse::comm
