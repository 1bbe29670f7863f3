// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <pthread.h>

// Defined if the program is linked with AddressSanitizer (the last two also with LeakSanitizer alone), whether or not
// Rehearse itself is compiled for it.
extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** fake_stack_save, const void* bottom, std::size_t bytes);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* fake_stack, const void** old_bottom, std::size_t* old_bytes);
[[gnu::weak]] void __lsan_register_root_region(const void* begin, std::size_t bytes);
[[gnu::weak]] void __lsan_ignore_object(const void* memory);
}

// For a function that still runs between AsanStack::start_switch() and the switch itself. To find uses after return,
// AddressSanitizer keeps frames outside of the stack. If the switch leaves a stack for good, start_switch() frees the
// frames of that stack, so this function must not have such a frame.
#define REHEARSE_LEAVES_STACK [[gnu::no_sanitize_address]]

namespace rehearse::exec {

inline bool looks_for_leaks() noexcept { return __lsan_ignore_object != nullptr; }

// Tells LeakSanitizer that heap memory is never freed: neither this memory nor what it points to counts as a leak.
inline void keep_reachable(const void* memory) noexcept { __lsan_ignore_object(memory); }

// Tells AddressSanitizer which stack is in use, because the Boost of Debian and Ubuntu does not. Costs one test in
// programs without AddressSanitizer.
class AsanStack {
 public:
  void set_bounds(const void* bottom, std::size_t bytes) noexcept {
    bottom_ = bottom;
    bytes_ = bytes;
  }
  void set_bounds_of_this_thread() noexcept {
    if (__sanitizer_start_switch_fiber == nullptr) return;
    pthread_attr_t attributes;
    void* bottom = nullptr;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &bottom, &bytes_);
    pthread_attr_destroy(&attributes);
    bottom_ = bottom;
  }
  // Call it on `from`, just before the switch. `from_ends`: the stack will never run again.
  static void start_switch(AsanStack& from, const AsanStack& to, bool from_ends) noexcept {
    if (__sanitizer_start_switch_fiber == nullptr) return;
    __sanitizer_start_switch_fiber(from_ends ? nullptr : &from.fake_, to.bottom_, to.bytes_);
  }
  // Call it on the new stack, before anything else.
  void enter() noexcept {
    if (__sanitizer_finish_switch_fiber != nullptr) __sanitizer_finish_switch_fiber(fake_, nullptr, nullptr);
  }
  // Tells LeakSanitizer that this stack stays as it is forever, so that memory to which it points does not count as
  // leaked. `last_frame`: the stack's lowest frame; null: the stack contains only what Boost put there at the start.
  // LeakSanitizer does not search the part that was never touched, because a search would touch it.
  void keep(const void* last_frame) noexcept {
    if (__lsan_register_root_region == nullptr) return;
    const auto* const top = static_cast<const char*>(bottom_) + bytes_;
    const auto* const lowest =
        (last_frame != nullptr ? static_cast<const char*>(last_frame) : top) - kBelowTheLastFrame;
    __lsan_register_root_region(lowest, static_cast<std::size_t>(top - lowest));
  }

 private:
  // Room for what the switch itself saves, or for what Boost puts there at the start.
  static constexpr std::ptrdiff_t kBelowTheLastFrame = 2048;
  const void* bottom_ = nullptr;
  std::size_t bytes_ = 0;
  void* fake_ = nullptr;
};

// To make a fiber, Boost runs the fiber's first function on the new stack until that function jumps back. The frame of
// that function must be on the new stack, not among those that AddressSanitizer keeps for the creator, because the
// creator may end first.
class AsanNewStack {
 public:
  explicit AsanNewStack(AsanStack& creator) noexcept : creator_(creator) {
    AsanStack::start_switch(creator_, creator_, false);
  }
  AsanNewStack(const AsanNewStack&) = delete;
  AsanNewStack& operator=(const AsanNewStack&) = delete;
  ~AsanNewStack() { creator_.enter(); }

 private:
  AsanStack& creator_;
};

}  // namespace rehearse::exec
