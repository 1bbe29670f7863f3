// SPDX-License-Identifier: BSD-3-Clause
// Function-local statics whose initialiser suspends: other fibers wait for it.
#include <array>
#include <atomic>
#include <cstdint>
#include <stdexcept>

#include "exec/interpose/real.h"
#include "exec/interpose/world_state.h"
#include "syscall.h"

namespace rehearse::exec::interpose {

int guard_acquire(std::int64_t* guard) REHEARSE_INTERPOSES("__cxa_guard_acquire");
void guard_release(std::int64_t* guard) REHEARSE_INTERPOSES("__cxa_guard_release");
void guard_abort(std::int64_t* guard) REHEARSE_INTERPOSES("__cxa_guard_abort");

namespace {

constinit Real<int (*)(std::int64_t*)> real_acquire("__cxa_guard_acquire");
constinit Real<void (*)(std::int64_t*)> real_release("__cxa_guard_release");
constinit Real<void (*)(std::int64_t*)> real_abort("__cxa_guard_abort");

// libstdc++'s protocol for the guard's first four bytes.
constexpr int kGuardDone = 1;
constexpr int kPending = 0x100;

std::atomic_ref<int> state_of(std::int64_t* guard) { return std::atomic_ref<int>(*reinterpret_cast<int*>(guard)); }

int acquire_in_fiber(Fiber& fiber, std::int64_t* guard) {
  Initialisations& initialisations = world_of(fiber).guards;
  const auto state = state_of(guard);
  for (;;) {
    int seen = 0;
    if (state.compare_exchange_strong(seen, kPending, std::memory_order_acq_rel)) {
      initialisations.begin(guard, fiber);
      return 1;
    }
    if ((seen & kGuardDone) != 0) return 0;
    const Fiber* const by = initialisations.who(guard);
    // If an initialiser comes back to its own variable, the standard leaves the behaviour undefined; in libstdc++ the
    // thread would wait for itself.
    if (by == &fiber) throw std::logic_error("the initialiser of a static variable came back to the same variable");
    if (by == nullptr) {
      // Another thread initialises the variable; libstdc++ waits for that thread with a futex.
      const PassThrough pass_through;
      const int result = real_acquire(guard);
      if (result == 1) initialisations.begin(guard, fiber);
      return result;
    }
    initialisations.wait(guard, fiber, InitialisationObserver("the initialisation of a static variable", *by));
  }
}

// libstdc++'s own function waits for other threads by syscall(), which is ours.
int acquire_exempt(std::int64_t* guard) {
  const PassThrough pass_through;
  return real_acquire(guard);
}

}  // namespace

int guard_acquire(std::int64_t* guard) {
  Fiber* const fiber = current_fiber();
  if (fiber == nullptr) return real_acquire(guard);
  return acquire_in_fiber(*fiber, guard);
}

void guard_release(std::int64_t* guard) {
  real_release(guard);
  if (Fiber* const fiber = current_fiber()) world_of(*fiber).guards.end(guard);
}

void guard_abort(std::int64_t* guard) {
  real_abort(guard);
  if (Fiber* const fiber = current_fiber()) world_of(*fiber).guards.end(guard);
}

std::span<const Interposed> guard_functions() {
  static const std::array functions = {
      Interposed{"__cxa_guard_acquire", reinterpret_cast<const void*>(guard_acquire), nullptr,
                 reinterpret_cast<const void*>(acquire_exempt)},
      Interposed{"__cxa_guard_release", reinterpret_cast<const void*>(guard_release)},
      Interposed{"__cxa_guard_abort", reinterpret_cast<const void*>(guard_abort)},
  };
  return functions;
}

void give_up_guard(const void* guard) { real_abort(static_cast<std::int64_t*>(const_cast<void*>(guard))); }

}  // namespace rehearse::exec::interpose
