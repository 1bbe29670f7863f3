// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/exec/throw_site.h>

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <exception>
#include <typeinfo>

#include <rehearse/exec/this_rank.h>

namespace rehearse::exec {
namespace {

// The newest throws of this thread's fibers. More than one, because destructors that run while an exception
// is on its way may throw too, or suspend and let another rank throw.
struct Throw {
  const void* exception = nullptr;
  std::size_t frames = 0;
  std::array<void*, CallSite::kFramesMax> addresses{};
};

struct Throws {
  std::array<Throw, 8> ring;
  std::size_t newest = 0;
};

constinit thread_local Throws throws;

// Not inlined: it counts the frames between here and the throw.
[[gnu::noinline]] void remember(const void* exception) noexcept {
  throws.newest = (throws.newest + 1) % throws.ring.size();
  Throw& entry = throws.ring[throws.newest];
  entry.exception = exception;
  entry.frames = CallSite::capture_to(entry.addresses, 2);
}

// Another exception will have this address: what was thrown there is over, and what comes may be no throw (but
// std::make_exception_ptr()).
void forget(const void* exception) noexcept {
  for (Throw& entry : throws.ring) {
    if (entry.exception == exception) entry.exception = nullptr;
  }
}

}  // namespace

CallSite last_throw() {
  if (!this_rank::is_fiber()) return {};
  // In libstdc++ an exception_ptr is the address of the exception, the one that was given to __cxa_throw.
  const std::exception_ptr current = std::current_exception();
  const void* exception = nullptr;
  static_assert(sizeof current == sizeof exception);
  __builtin_memcpy(&exception, &current, sizeof exception);
  if (exception == nullptr) return {};
  for (std::size_t age = 0; age < throws.ring.size(); ++age) {
    const Throw& entry = throws.ring[(throws.newest + throws.ring.size() - age) % throws.ring.size()];
    if (entry.exception == exception) return CallSite::from_addresses(std::span(entry.addresses).first(entry.frames));
  }
  return {};
}

}  // namespace rehearse::exec

// Every `throw` calls this, in every library: an executable's definition comes before that of libstdc++. The
// stack must be walked here, since unwinding destroys it.
extern "C" [[gnu::visibility("default")]] [[noreturn]] void __cxa_throw(void* exception, std::type_info* type,
                                                                        void (*destroy)(void*)) {
  using Function = void (*)(void*, std::type_info*, void (*)(void*));
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "__cxa_throw"));
  if (rehearse::exec::this_rank::is_fiber()) rehearse::exec::remember(exception);
  next(exception, type, destroy);
  __builtin_unreachable();
}

extern "C" [[gnu::visibility("default")]] void* __cxa_allocate_exception(std::size_t bytes) noexcept {
  using Function = void* (*)(std::size_t);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "__cxa_allocate_exception"));
  void* const exception = next(bytes);
  if (rehearse::exec::this_rank::is_fiber()) rehearse::exec::forget(exception);
  return exception;
}
