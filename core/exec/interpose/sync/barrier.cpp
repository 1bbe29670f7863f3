// SPDX-License-Identifier: BSD-3-Clause
// pthread barriers: fibers are counted and wait in our table; libc's object only supplies the number of participants.
#include <array>
#include <cstring>

#include <pthread.h>

#include <fmt/format.h>

#include "exec/interpose/real.h"
#include "exec/interpose/world_state.h"
#include "exec/wait/suspension.h"

namespace rehearse::exec::interpose {

int barrier_wait(pthread_barrier_t* barrier) REHEARSE_INTERPOSES("pthread_barrier_wait");

namespace {

constinit Real<int (*)(pthread_barrier_t*)> real_barrier_wait("pthread_barrier_wait");

// glibc's layout: how many have arrived, the round, the number of participants.
unsigned count_of(const pthread_barrier_t& barrier) noexcept {
  constexpr std::size_t count_at = 2 * sizeof(unsigned);
  unsigned count = 0;
  std::memcpy(&count, reinterpret_cast<const char*>(&barrier) + count_at, sizeof count);
  return count;
}

class BarrierObserver final : public Observer {
 public:
  BarrierObserver(const BarrierTable& table, const pthread_barrier_t& barrier) : table_(table), barrier_(barrier) {}

 private:
  Wait describe() const override {
    return {.waits_on = fmt::format("a barrier (pthread_barrier_wait) to which {} of {} threads have come",
                                    table_.arrived(&barrier_), count_of(barrier_)),
            .any_rank = true};
  }

  const BarrierTable& table_;
  const pthread_barrier_t& barrier_;
};

int wait_at_barrier(Fiber& fiber, pthread_barrier_t* barrier) {
  BarrierTable& table = world_of(fiber).barriers;
  const BarrierObserver observer(table, *barrier);
  if (fiber.world->outcome.ended_for(fiber)) abort_wait(fiber, observer);
  if (table.arrive(barrier) == count_of(*barrier)) {
    table.open(barrier);
    return PTHREAD_BARRIER_SERIAL_THREAD;
  }
  if (table.waiters.wait_or_end(barrier, observer)) return 0;
  table.leave(barrier);
  abort_wait(fiber, observer);
}

}  // namespace

int barrier_wait(pthread_barrier_t* barrier) {
  Fiber* const fiber = current_fiber();
  return fiber == nullptr ? real_barrier_wait(barrier) : wait_at_barrier(*fiber, barrier);
}

std::span<const Interposed> barrier_functions() {
  static const std::array functions = {
      Interposed{"pthread_barrier_wait", reinterpret_cast<const void*>(barrier_wait)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
