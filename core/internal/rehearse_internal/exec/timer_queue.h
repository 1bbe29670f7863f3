// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <rehearse/exec/time.h>

namespace rehearse::exec {

// An event at a point in virtual time. Intrusive: the owner must keep the object alive while it is armed, which the
// destructor checks. Arming allocates nothing but the queue's own slot.
class Timer {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  virtual ~Timer();

  bool armed() const noexcept { return slot_ != kUnarmed; }
  VirtualTime due() const noexcept { return due_; }

 private:
  friend class TimerQueue;

  // Runs on the scheduler's own context, outside of every rank. May wake fibers and arm timers, including this one.
  virtual void fire() = 0;

  // True if this timer only makes something fail, and so helps no rank to go on: it is a timeout or a fault. A world in
  // which only such timers are left hangs until they fire.
  virtual bool gives_up() const noexcept { return false; }

  static constexpr std::size_t kUnarmed = static_cast<std::size_t>(-1);
  VirtualTime due_{};
  std::uint64_t order_ = 0;
  std::size_t slot_ = kUnarmed;
};

// Timers in order of (due time, order of arming), so that equal times fire in a fixed order. A binary heap:
// arm, cancel and fire cost O(log n).
class TimerQueue {
 public:
  // Precondition: `timer` is not armed.
  void arm(Timer& timer, VirtualTime due);

  // Does nothing if the timer is not armed.
  void cancel(Timer& timer) noexcept;

  std::optional<VirtualTime> next_due() const noexcept;

  // Whether any armed timer may help a rank to go on (not Timer::gives_up()).
  bool any_moves_on() const noexcept { return give_ups_ < heap_.size(); }

  // Fires every timer that is due at `now` or earlier, including those that fired timers arm. Returns how many.
  std::size_t fire_due(VirtualTime now);

 private:
  bool earlier(const Timer* a, const Timer* b) const noexcept;
  void place(Timer* timer, std::size_t slot) noexcept;
  void sift_up(std::size_t slot) noexcept;
  void sift_down(std::size_t slot) noexcept;

  std::vector<Timer*> heap_;
  std::uint64_t armed_so_far_ = 0;
  std::size_t give_ups_ = 0;
};

}  // namespace rehearse::exec
