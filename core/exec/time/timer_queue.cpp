// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/timer_queue.h>

#include <algorithm>

#include <rehearse_internal/exec/check.h>

namespace rehearse::exec {

// The owner must cancel the timer first, because the queue would fire a destroyed timer.
Timer::~Timer() { REHEARSE_CHECK(!armed(), slot_, due_.time_since_epoch().count()); }

bool TimerQueue::earlier(const Timer* a, const Timer* b) noexcept {
  return a->due_ != b->due_ ? a->due_ < b->due_ : a->order_ < b->order_;
}

void TimerQueue::place(Heap& heap, Timer* timer, std::size_t slot) noexcept {
  heap[slot] = timer;
  timer->slot_ = slot;
}

void TimerQueue::sift_up(Heap& heap, std::size_t slot) noexcept {
  Timer* const moving = heap[slot];
  while (slot > 0) {
    const std::size_t parent = (slot - 1) / 2;
    if (!earlier(moving, heap[parent])) break;
    place(heap, heap[parent], slot);
    slot = parent;
  }
  place(heap, moving, slot);
}

void TimerQueue::sift_down(Heap& heap, std::size_t slot) noexcept {
  Timer* const moving = heap[slot];
  for (;;) {
    std::size_t child = 2 * slot + 1;
    if (child >= heap.size()) break;
    if (child + 1 < heap.size() && earlier(heap[child + 1], heap[child])) ++child;
    if (!earlier(heap[child], moving)) break;
    place(heap, heap[child], slot);
    slot = child;
  }
  place(heap, moving, slot);
}

void TimerQueue::arm(Timer& timer, VirtualTime due) {
  REHEARSE_CHECK(!timer.armed(), timer.slot_, events_.size(), due.time_since_epoch().count());
  timer.is_limit_ = timer.kind() == Timer::Kind::limit;
  timer.due_ = due;
  timer.order_ = armed_so_far_++;
  give_ups_ += timer.gives_up() ? 1 : 0;
  Heap& heap = heap_of(timer);
  heap.push_back(&timer);
  timer.slot_ = heap.size() - 1;
  sift_up(heap, timer.slot_);
}

void TimerQueue::cancel(Timer& timer) noexcept {
  if (!timer.armed()) return;
  Heap& heap = heap_of(timer);
  const std::size_t slot = timer.slot_;
  // Otherwise the timer belongs to another queue.
  REHEARSE_CHECK(slot < heap.size() && heap[slot] == &timer, slot, heap.size());
  give_ups_ -= timer.gives_up() ? 1 : 0;
  timer.slot_ = Timer::kUnarmed;
  Timer* const last = heap.back();
  heap.pop_back();
  if (last == &timer) return;
  place(heap, last, slot);
  sift_up(heap, slot);
  sift_down(heap, last->slot_);
}

Timer* TimerQueue::first() const noexcept {
  if (limits_.empty()) return events_.empty() ? nullptr : events_.front();
  if (events_.empty()) return limits_.front();
  Timer *const event = events_.front(), *const limit = limits_.front();
  const auto due = due_of_first_limit();
  const bool is_limit = due != event->due_ ? due < event->due_ : limit->order_ < event->order_;
  return is_limit ? limit : event;
}

std::optional<VirtualTime> TimerQueue::next_due() const noexcept {
  const Timer* const timer = first();
  if (timer == nullptr) return std::nullopt;
  return timer->is_limit_ ? due_of_first_limit() : timer->due_;
}

// `first` is the first of its heap. In a heap, those that equal it are below it without a gap.
std::vector<Timer*> TimerQueue::equals(Timer& first) {
  const Heap& heap = heap_of(first);
  std::vector<Timer*> equal{&first};
  for (std::size_t i = 0; i < equal.size(); ++i) {
    const auto child = 2 * equal[i]->slot_ + 1;
    for (const auto slot : {child, child + 1}) {
      if (slot < heap.size() && heap[slot]->due_ == first.due_) equal.push_back(heap[slot]);
    }
  }
  std::erase_if(equal, [&](const Timer* timer) { return timer->kind() != first.kind(); });
  std::ranges::sort(equal, earlier);
  return equal;
}

std::size_t TimerQueue::fire_due(VirtualTime now, const PickOfEqual& pick) {
  std::size_t fired = 0;
  for (auto due = next_due(); due && *due <= now; due = next_due()) {
    Timer* timer = first();
    if (pick) {
      const auto equal = equals(*timer);
      if (equal.size() > 1) timer = equal[pick(static_cast<std::uint32_t>(equal.size()))];
    }
    cancel(*timer);
    timer->fire();
    ++fired;
  }
  return fired;
}

std::optional<VirtualTime> TimerQueue::next_event() const noexcept {
  const Timer* next = nullptr;
  if (!events_.empty() && events_.front()->kind() == Timer::Kind::event) {
    next = events_.front();
  } else {
    for (const Timer* const timer : events_) {
      if (timer->kind() == Timer::Kind::event && (next == nullptr || earlier(timer, next))) next = timer;
    }
  }
  if (next == nullptr || (!limits_.empty() && due_of_first_limit() <= next->due_)) return std::nullopt;
  return next->due_;
}

}  // namespace rehearse::exec
