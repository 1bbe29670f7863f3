// SPDX-License-Identifier: BSD-3-Clause
// The counters by which a real thread finds out whether fibers wait for an object, and by which it signals them. The
// addresses of many objects map to the same pair of counters, so nothing needs to be allocated or locked; at worst a
// fiber wakes in vain.
#include "outside_wait.h"

#include <array>
#include <atomic>

#include "exec/time/doorbell.h"
#include "world_state.h"

namespace rehearse::exec::interpose {
namespace {

struct Number {
  std::atomic<std::uint32_t> waiting{0};
  std::atomic<std::uint32_t> signals{0};
};

constinit std::array<Number, 1024> g_numbers{};

Number& number_of(const void* object) noexcept {
  // Objects are aligned to 4 bytes at least, so the lowest two bits say nothing. The higher bits are mixed in so that
  // objects at the same offset from different pages differ.
  const auto address = reinterpret_cast<std::uintptr_t>(object) >> 2;
  return g_numbers[(address ^ (address >> 10)) % g_numbers.size()];
}

}  // namespace

OutsideWaits::~OutsideWaits() {
  while (!waits_.empty()) end(waits_.begin());
}

std::list<OutsideWaits::Wait>::iterator OutsideWaits::begin(const void* object, WaitTable& table) {
  Number& number = number_of(object);
  number.waiting.fetch_add(1);
  return waits_.insert(waits_.end(), {object, &table, number.signals.load()});
}

void OutsideWaits::end(std::list<Wait>::iterator wait) noexcept {
  number_of(wait->object).waiting.fetch_sub(1);
  waits_.erase(wait);
}

void OutsideWaits::wake_signalled() {
  for (Wait& wait : waits_) {
    const auto signals = number_of(wait.object).signals.load();
    if (signals == wait.signals) continue;
    wait.signals = signals;
    wait.table->notify_all(wait.object);
  }
}

OutsideWait::OutsideWait(Fiber& fiber, WaitTable& table, const void* object) {
  if (!fiber.world->clock.passes_by_itself()) return;
  waits_ = &world_of(fiber).outside_waits;
  wait_ = waits_->begin(object, table);
}

void signal_outside(const void* object) noexcept {
  Number& number = number_of(object);
  // The caller has changed the object before this call. A fiber that is not counted yet will see the change.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (number.waiting.load() == 0) return;
  number.signals.fetch_add(1);
  ring_doorbell();
}

}  // namespace rehearse::exec::interpose
