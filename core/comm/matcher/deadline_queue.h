// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/comm/rank_work.h>
#include <rehearse/exec/timer_queue.h>

namespace rehearse::comm {

// The sends and receives of a group that have yet to end, by deadline: one timer for all of them. Time limits are
// mostly equal, so that a new one belongs at the end.
class DeadlineQueue final : public exec::Timer {
 public:
  void add(RankWork& work, exec::TimerQueue& timers);
  void remove(RankWork& work, exec::TimerQueue& timers) noexcept;  // one that is in it
  void clear(exec::TimerQueue& timers) noexcept;

 private:
  using Works =
      boost::intrusive::list<RankWork,
                             boost::intrusive::member_hook<RankWork, RankWork::DeadlineHook, &RankWork::by_deadline>,
                             boost::intrusive::constant_time_size<false>>;

  void fire() override;
  bool gives_up() const noexcept override { return true; }

  Works works_;
};

}  // namespace rehearse::comm
