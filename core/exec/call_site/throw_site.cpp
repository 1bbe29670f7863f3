// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/throw_site.h>

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <span>
#include <typeinfo>

#include <rehearse_internal/exec/call_site_scope.h>

#include "exec/fiber/fiber.h"

namespace rehearse::exec {
namespace {

// The newest throws of this thread's fibers and, while a KeepThrowSites lives, of the thread itself. Keeps several,
// because destructors that run during unwinding may throw too, or suspend and let another rank throw.
struct Throw {
  void* exception = nullptr;
  const Fiber* fiber = nullptr;  // for comparison only
  int under_way = 0;             // number of exceptions in flight in the fiber at the throw
  std::size_t frames = 0;
  std::array<void*, CallSite::kFramesMax> addresses{};
};

struct Throws {
  std::array<Throw, 16> ring;
  std::size_t newest = 0;
};

constinit thread_local Throws throws;
constinit thread_local int keepers = 0;  // number of living KeepThrowSites
constinit std::atomic<ThrowObserver> throw_observer = nullptr;

bool are_kept() noexcept { return keepers > 0 || current_fiber() != nullptr; }

template <class Fits>
const Throw* newest_that(const Fits& fits) {
  for (std::size_t age = 0; age < throws.ring.size(); ++age) {
    const Throw& entry = throws.ring[(throws.newest + throws.ring.size() - age) % throws.ring.size()];
    if (entry.exception != nullptr && fits(entry)) return &entry;
  }
  return nullptr;
}

// Overwrites the oldest entry. The caller must fill in the frames.
Throw& next_entry(void* exception) noexcept {
  throws.newest = (throws.newest + 1) % throws.ring.size();
  Throw& entry = throws.ring[throws.newest];
  entry.exception = exception;
  entry.fiber = current_fiber();
  entry.under_way = std::uncaught_exceptions();
  return entry;
}

// Not inlined, because the walk skips a fixed number of frames between here and the throw.
[[gnu::noinline]] void remember(void* exception) noexcept {
  Throw& entry = next_entry(exception);
  const std::size_t asked = CallSiteScope::copy_to(entry.addresses);
  entry.frames = asked + CallSite::capture_to(std::span(entry.addresses).subspan(asked), 2);
}

bool is_remembered(const void* exception) noexcept {
  return newest_that([exception](const Throw& entry) { return entry.exception == exception; }) != nullptr;
}

// Remembers that an exception is thrown again. Its place stays the place of the first throw.
void remember_again(void* exception) noexcept {
  const Throw* const first = newest_that([exception](const Throw& entry) { return entry.exception == exception; });
  Throw& entry = next_entry(exception);
  if (first == nullptr) {
    entry.frames = 0;
  } else if (first != &entry) {
    entry.frames = first->frames;
    std::copy_n(first->addresses.begin(), first->frames, entry.addresses.begin());
  }
}

// Drops the entries for this address, because a new exception gets it. The new exception may never be thrown
// (std::make_exception_ptr()).
void forget(const void* exception) noexcept {
  for (Throw& entry : throws.ring) {
    if (entry.exception == exception) entry.exception = nullptr;
  }
}

// In libstdc++, an exception_ptr is the address that was passed to __cxa_throw.
void* address_of(const std::exception_ptr& pointer) {
  void* exception = nullptr;
  static_assert(sizeof pointer == sizeof exception);
  __builtin_memcpy(&exception, &pointer, sizeof exception);
  return exception;
}

// Makes an exception_ptr from the address of an exception in flight. The copy counts its reference; the uncounted
// original is cleared, so that its destructor does not release a reference.
std::exception_ptr pointer_to(void* exception) {
  std::exception_ptr uncounted;
  __builtin_memcpy(static_cast<void*>(&uncounted), &exception, sizeof exception);
  std::exception_ptr counted = uncounted;
  exception = nullptr;
  __builtin_memcpy(static_cast<void*>(&uncounted), &exception, sizeof exception);
  return counted;
}

CallSite site_of(const Throw* entry) {
  return entry != nullptr ? CallSite::from_addresses(std::span(entry->addresses).first(entry->frames)) : CallSite();
}

}  // namespace

KeepThrowSites::KeepThrowSites() noexcept { ++keepers; }
KeepThrowSites::~KeepThrowSites() { --keepers; }

void observe_throws(ThrowObserver observer) noexcept { throw_observer = observer; }

CallSite last_throw() {
  const void* const exception = address_of(std::current_exception());
  if (exception == nullptr) return {};
  return site_of(newest_that([exception](const Throw& entry) { return entry.exception == exception; }));
}

std::optional<Unwinding> exception_under_way() {
  const int count = std::uncaught_exceptions();
  const Fiber* const fiber = current_fiber();
  if (fiber == nullptr || count == 0) return std::nullopt;
  // Destructors may throw and catch exceptions during the unwinding. At such a throw, one more exception is in flight.
  const Throw* const entry = newest_that(
      [fiber, count](const Throw& candidate) { return candidate.fiber == fiber && candidate.under_way == count - 1; });
  if (entry == nullptr) return std::nullopt;
  return Unwinding{pointer_to(entry->exception), "", site_of(entry)};
}

}  // namespace rehearse::exec

// Functions of the C++ library, declared under other names, because compilers have built-in declarations for them.
extern "C" {
[[gnu::visibility("default")]] [[noreturn]] void rehearse_throw(void* exception, std::type_info* type,
                                                                void (*destroy)(void*)) asm("__cxa_throw");
[[gnu::visibility("default")]] [[noreturn]] void rehearse_rethrow() asm("__cxa_rethrow");
[[gnu::visibility("default")]] [[noreturn]] void rehearse_rethrow_exception(void** pointer) asm(
    "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE");
[[gnu::visibility("default")]] void* rehearse_allocate_exception(std::size_t bytes) noexcept
    asm("__cxa_allocate_exception");
}

// Every `throw` in every library calls this, because the executable's definition precedes that of libstdc++. Walk the
// stack here, because unwinding destroys it.
void rehearse_throw(void* exception, std::type_info* type, void (*destroy)(void*)) {
  using Function = void (*)(void*, std::type_info*, void (*)(void*));
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "__cxa_throw"));
  if (rehearse::exec::are_kept()) rehearse::exec::remember(exception);
  if (const auto observer = rehearse::exec::throw_observer.load()) observer(exception, *type);
  next(exception, type, destroy);
  __builtin_unreachable();
}

// `throw;`
void rehearse_rethrow() {
  using Function = void (*)();
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "__cxa_rethrow"));
  if (rehearse::exec::are_kept()) {
    void* const current = rehearse::exec::address_of(std::current_exception());
    if (current != nullptr) rehearse::exec::remember_again(current);
  }
  next();
  __builtin_unreachable();
}

// std::rethrow_exception(). The argument has a destructor, so it is passed by address.
void rehearse_rethrow_exception(void** pointer) {
  using Function = void (*)(void**);
  static const auto next =
      reinterpret_cast<Function>(dlsym(RTLD_NEXT, "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE"));
  if (rehearse::exec::are_kept()) {
    // An exception that was never thrown (an error made for a future, say) is first thrown here.
    if (rehearse::exec::is_remembered(*pointer)) {
      rehearse::exec::remember_again(*pointer);
    } else {
      rehearse::exec::remember(*pointer);
    }
  }
  next(pointer);
  __builtin_unreachable();
}

void* rehearse_allocate_exception(std::size_t bytes) noexcept {
  using Function = void* (*)(std::size_t);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "__cxa_allocate_exception"));
  void* const exception = next(bytes);
  rehearse::exec::forget(exception);
  return exception;
}
