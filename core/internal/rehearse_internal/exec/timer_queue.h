// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

 protected:
  // What the timer means for time that passes by choice (ExecutorOptions::patience): an event may come early, as seen
  // by the fibers that wait meanwhile. The limit of a wait must not: it is as much later as time has passed by choice.
  // A fault comes at its time, and has no influence on the choice.
  enum class Kind : std::uint8_t { event, limit, fault };

 private:
  friend class TimerQueue;

  // Runs on the scheduler's own context, outside of every rank. May wake fibers and arm timers, including this one.
  virtual void fire() = 0;

  // True if this timer only makes something fail, and so helps no rank to go on: it is a timeout or a fault. A world in
  // which only such timers are left hangs until they fire.
  virtual bool gives_up() const noexcept { return false; }

  virtual Kind kind() const noexcept { return Kind::event; }

  static constexpr std::size_t kUnarmed = static_cast<std::size_t>(-1);
  VirtualTime due_{};
  std::uint64_t order_ = 0;
  std::size_t slot_ = kUnarmed;
  bool is_limit_ = false;  // while armed
};

// Timers in order of (due time, order of arming), so that equal times fire in a fixed order. Binary heaps: arm, cancel
// and fire cost O(log n).
class TimerQueue {
 public:
  // Precondition: `timer` is not armed. The due time of a limit is one of the time without what passes by choice; see
  // limit_now().
  void arm(Timer& timer, VirtualTime due);

  // Does nothing if the timer is not armed.
  void cancel(Timer& timer) noexcept;

  std::optional<VirtualTime> next_due() const noexcept;

  // Whether any armed timer may help a rank to go on (not Timer::gives_up()).
  bool any_moves_on() const noexcept { return give_ups_ < events_.size() + limits_.size(); }

  // Picks one of `count` timers of one kind and due time, by its place in the order of arming.
  using PickOfEqual = std::function<std::uint32_t(std::uint32_t count)>;

  // Fires every timer that is due at `now` or earlier, including those that fired timers arm. Returns how many.
  std::size_t fire_due(VirtualTime now, const PickOfEqual& pick = {});

  // The next event to which time may pass by choice. nullopt: there is none before the next limit.
  std::optional<VirtualTime> next_event() const noexcept;
  // How much time has passed by choice so far; note_passed() adds to it. Call it before fire_due().
  VirtualDuration passed_by_choice() const noexcept { return passed_by_choice_; }
  void note_passed(VirtualDuration time) noexcept { passed_by_choice_ += time; }
  // `now` on the clock of limits, which stands still while time passes by choice.
  VirtualTime limit_now(VirtualTime now) const noexcept { return now - passed_by_choice_; }

 private:
  using Heap = std::vector<Timer*>;

  static bool earlier(const Timer* a, const Timer* b) noexcept;
  static void place(Heap& heap, Timer* timer, std::size_t slot) noexcept;
  static void sift_up(Heap& heap, std::size_t slot) noexcept;
  static void sift_down(Heap& heap, std::size_t slot) noexcept;
  Heap& heap_of(const Timer& timer) noexcept { return timer.is_limit_ ? limits_ : events_; }
  VirtualTime due_of_first_limit() const noexcept { return limits_.front()->due_ + passed_by_choice_; }
  Timer* first() const noexcept;  // null: none is armed
  std::vector<Timer*> equals(Timer& first);

  Heap events_, limits_;  // faults are among the events
  std::uint64_t armed_so_far_ = 0;
  std::size_t give_ups_ = 0;
  VirtualDuration passed_by_choice_{0};
};

}  // namespace rehearse::exec
