// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/timer_queue.h>

#include <rehearse_internal/exec/check.h>

namespace rehearse::exec {

// The owner must cancel the timer first, because the queue would fire a destroyed timer.
Timer::~Timer() { REHEARSE_CHECK(!armed(), slot_, due_.time_since_epoch().count()); }

bool TimerQueue::earlier(const Timer* a, const Timer* b) const noexcept {
  return a->due_ != b->due_ ? a->due_ < b->due_ : a->order_ < b->order_;
}

void TimerQueue::place(Timer* timer, std::size_t slot) noexcept {
  heap_[slot] = timer;
  timer->slot_ = slot;
}

void TimerQueue::sift_up(std::size_t slot) noexcept {
  Timer* const moving = heap_[slot];
  while (slot > 0) {
    const std::size_t parent = (slot - 1) / 2;
    if (!earlier(moving, heap_[parent])) break;
    place(heap_[parent], slot);
    slot = parent;
  }
  place(moving, slot);
}

void TimerQueue::sift_down(std::size_t slot) noexcept {
  Timer* const moving = heap_[slot];
  for (;;) {
    std::size_t child = 2 * slot + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && earlier(heap_[child + 1], heap_[child])) ++child;
    if (!earlier(heap_[child], moving)) break;
    place(heap_[child], slot);
    slot = child;
  }
  place(moving, slot);
}

void TimerQueue::arm(Timer& timer, VirtualTime due) {
  REHEARSE_CHECK(!timer.armed(), timer.slot_, heap_.size(), due.time_since_epoch().count());
  timer.due_ = due;
  timer.order_ = armed_so_far_++;
  give_ups_ += timer.gives_up() ? 1 : 0;
  heap_.push_back(&timer);
  timer.slot_ = heap_.size() - 1;
  sift_up(timer.slot_);
}

void TimerQueue::cancel(Timer& timer) noexcept {
  if (!timer.armed()) return;
  const std::size_t slot = timer.slot_;
  // Otherwise the timer belongs to another queue.
  REHEARSE_CHECK(slot < heap_.size() && heap_[slot] == &timer, slot, heap_.size());
  give_ups_ -= timer.gives_up() ? 1 : 0;
  timer.slot_ = Timer::kUnarmed;
  Timer* const last = heap_.back();
  heap_.pop_back();
  if (last == &timer) return;
  place(last, slot);
  sift_up(slot);
  sift_down(last->slot_);
}

std::optional<VirtualTime> TimerQueue::next_due() const noexcept {
  if (heap_.empty()) return std::nullopt;
  return heap_.front()->due_;
}

std::size_t TimerQueue::fire_due(VirtualTime now) {
  std::size_t fired = 0;
  while (!heap_.empty() && heap_.front()->due_ <= now) {
    Timer* const timer = heap_.front();
    cancel(*timer);
    timer->fire();
    ++fired;
  }
  return fired;
}

}  // namespace rehearse::exec
