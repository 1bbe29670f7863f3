// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#if defined(REHEARSE_ASAN)
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif

namespace rehearse::exec {

// For a function that calls AsanStack::leave() and returns before the switch itself. When the stack that it leaves has
// ended, the frames that AddressSanitizer keeps elsewhere to find uses after return are gone at once: it must have none.
#if defined(REHEARSE_ASAN)
#define REHEARSE_LEAVES_STACK [[gnu::no_sanitize_address]]
#else
#define REHEARSE_LEAVES_STACK
#endif

// Tells AddressSanitizer which stack is in use: Debian's and Ubuntu's Boost do not. Empty in other builds.
class AsanStack {
 public:
#if defined(REHEARSE_ASAN)
  void set_bounds(const void* bottom, std::size_t bytes) noexcept {
    bottom_ = bottom;
    bytes_ = bytes;
  }
  void set_bounds_of_this_thread() noexcept {
    pthread_attr_t attributes;
    void* bottom = nullptr;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &bottom, &bytes_);
    pthread_attr_destroy(&attributes);
    bottom_ = bottom;
  }
  // On `from`, just before the switch; `from_ends` when it will never be switched to again.
  static void leave(AsanStack& from, const AsanStack& to, bool from_ends) noexcept {
    __sanitizer_start_switch_fiber(from_ends ? nullptr : &from.fake_, to.bottom_, to.bytes_);
  }
  // On the new stack, as its first act.
  void enter() noexcept { __sanitizer_finish_switch_fiber(fake_, nullptr, nullptr); }
  // On the stack, which stays as it is for ever: what it points to is in use and not a leak. The part that was never
  // touched is left out, because looking for pointers would touch it.
  void keep() noexcept {
    const auto* const top = static_cast<const char*>(bottom_) + bytes_;
    const auto* const lowest = static_cast<const char*>(__builtin_frame_address(0)) - kBelowTheLastFrame;
    __lsan_register_root_region(lowest, static_cast<std::size_t>(top - lowest));
  }

 private:
  static constexpr std::ptrdiff_t kBelowTheLastFrame = 2048;  // what the switch itself saves there
  const void* bottom_ = nullptr;
  std::size_t bytes_ = 0;
  void* fake_ = nullptr;
#else
  void set_bounds(const void*, std::size_t) noexcept {}
  void set_bounds_of_this_thread() noexcept {}
  static void leave(AsanStack&, const AsanStack&, bool) noexcept {}
  void enter() noexcept {}
  void keep() noexcept {}
#endif
};

// To make a fiber, Boost runs its first function on the new stack as far as its first jump back. That function's frame
// must lie there: not among those that AddressSanitizer keeps for the creator, which may end first.
class AsanNewStack {
 public:
  explicit AsanNewStack(AsanStack& creator) noexcept : creator_(creator) {
    AsanStack::leave(creator_, creator_, false);
  }
  AsanNewStack(const AsanNewStack&) = delete;
  AsanNewStack& operator=(const AsanNewStack&) = delete;
  ~AsanNewStack() { creator_.enter(); }

 private:
  AsanStack& creator_;
};

}  // namespace rehearse::exec
