// SPDX-License-Identifier: BSD-3-Clause
#include "comm/matcher/dispute.h"

#include <utility>

#include <rehearse_internal/exec/timer_queue.h>

namespace rehearse::comm {

// Ends the wait for the others.
class Dispute::Patience final : public exec::Timer {
 public:
  Patience(exec::TimerQueue& timers, VirtualTime due, exec::WaitQueue& queue) : timers_(timers), queue_(queue) {
    timers_.arm(*this, due);
  }
  ~Patience() override { timers_.cancel(*this); }

  bool over = false;

 private:
  void fire() override {
    over = true;
    queue_.notify_all();
  }

  exec::TimerQueue& timers_;
  exec::WaitQueue& queue_;
};

void Dispute::settle(const exec::Observer& observer) {
  try {
    wait_for_the_others(observer);
  } catch (...) {
    services_.mismatches.report(mismatch());
    throw;
  }
  services_.mismatches.fail(mismatch());
}

void Dispute::wait_for_the_others(const exec::Observer& observer) {
  constexpr VirtualDuration kPatience = std::chrono::seconds(1);
  const Patience patience(services_.timers(), services_.now() + kPatience, queue_);
  while (!all_have_come() && !patience.over) queue_.wait(observer);
}

}  // namespace rehearse::comm
