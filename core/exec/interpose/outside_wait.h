// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <list>

#include "wait_table.h"

namespace rehearse::exec {
class Fiber;
}

namespace rehearse::exec::interpose {

// The waits of a world's fibers that real threads may end, by the objects' addresses. The executor's thread asks.
class OutsideWaits {
 public:
  struct Wait {
    const void* object;
    WaitTable* table;
    std::uint32_t signals;  // for the object (or one that shares its number) when the wait began, or was last woken
  };

  OutsideWaits() = default;
  OutsideWaits(const OutsideWaits&) = delete;
  OutsideWaits& operator=(const OutsideWaits&) = delete;
  // Forgets those of fibers that were left behind.
  ~OutsideWaits();

  std::list<Wait>::iterator begin(const void* object, WaitTable& table);
  void end(std::list<Wait>::iterator wait) noexcept;

  bool empty() const noexcept { return waits_.empty(); }

  // Wakes those for whose objects a thread has signalled. Any of them may find that it was not for it.
  void wake_signalled();

 private:
  std::list<Wait> waits_;
};

// Around all that a fiber does from its look at an object to the end of its wait for it: a real thread's signal in
// between is not lost. Where time stands still while ranks run, there is none, and this does nothing.
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

// This thread has changed the object, or signals it: for worlds of other threads. Takes no lock; also in a signal
// handler. A load where nobody waits.
void signal_outside(const void* object) noexcept;

}  // namespace rehearse::exec::interpose
