// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/exec/clock.h>
#include <rehearse_internal/exec/timer_queue.h>

#include "comm/work/rank_work.h"

namespace rehearse::comm {

// The sends and receives of a group that have a deadline, by deadline, with one timer for all of them. Time limits are
// mostly equal, so a new work usually belongs at the end.
class DeadlineQueue final : public exec::Timer {
 public:
  DeadlineQueue(exec::TimerQueue& timers, const exec::Clock& clock) : timers_(timers), clock_(clock) {}

  void add(RankWork& work);
  void remove(RankWork& work) noexcept;  // must be in the queue
  void clear() noexcept;

 private:
  using Works =
      boost::intrusive::list<RankWork,
                             boost::intrusive::member_hook<RankWork, RankWork::DeadlineHook, &RankWork::by_deadline>,
                             boost::intrusive::constant_time_size<false>>;

  void fire() override;
  bool gives_up() const noexcept override { return true; }
  Kind kind() const noexcept override { return Kind::limit; }

  exec::TimerQueue& timers_;
  const exec::Clock& clock_;
  Works works_;
};

}  // namespace rehearse::comm
