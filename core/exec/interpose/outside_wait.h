// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <list>

#include "wait_table.h"

namespace rehearse::exec {
class Fiber;
}

namespace rehearse::exec::interpose {

// The waits of a world's fibers that real threads may end. A fiber waits for an object, which its address identifies.
// Used on the executor's thread only.
class OutsideWaits {
 public:
  struct Wait {
    const void* object;
    WaitTable* table;
    std::uint32_t signals;  // the object's counter of signals when the wait began or its fiber was last woken
  };

  OutsideWaits() = default;
  OutsideWaits(const OutsideWaits&) = delete;
  OutsideWaits& operator=(const OutsideWaits&) = delete;
  // Forgets the waits from which fibers never returned (see FiberLife::leave_behind()).
  ~OutsideWaits();

  std::list<Wait>::iterator begin(const void* object, WaitTable& table);
  void end(std::list<Wait>::iterator wait) noexcept;

  bool empty() const noexcept { return waits_.empty(); }

  // Wakes the fibers for whose objects a thread has signalled. A fiber may wake in vain.
  void wake_signalled();

 private:
  std::list<Wait> waits_;
};

// Make it before a fiber looks at an object, and keep it until the fiber's wait for the object ends. Then no signal of
// a real thread is lost in between. Does nothing if time stands still while ranks run, because then no real threads
// take part.
class OutsideWait {
 public:
  OutsideWait(Fiber& fiber, WaitTable& table, const void* object);
  OutsideWait(const OutsideWait&) = delete;
  OutsideWait& operator=(const OutsideWait&) = delete;
  ~OutsideWait() {
    if (waits_ != nullptr) waits_->end(wait_);
  }

 private:
  OutsideWaits* waits_ = nullptr;
  std::list<OutsideWaits::Wait>::iterator wait_;
};

// Tells worlds on other threads that this thread has changed or signalled the object. Takes no lock, and may be called
// in a signal handler. Costs one load if no fiber waits.
void signal_outside(const void* object) noexcept;

}  // namespace rehearse::exec::interpose
