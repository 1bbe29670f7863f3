// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>

namespace rehearse::exec {

namespace detail {

std::size_t new_fiber_local_slot() noexcept;

// What the running fiber (or thread, outside of fibers) keeps under `slot`; null when it has made nothing yet.
void* find_fiber_local(std::size_t slot) noexcept;

// Keeps `made` under the empty `slot`; `destroy` is called when the fiber ends. Does not own it when it throws.
void keep_fiber_local(std::size_t slot, void* made, void (*destroy)(void*) noexcept);

}  // namespace detail

// One T for each fiber, value-initialised when the fiber first asks for it; outside of fibers one for each thread. What
// a thread_local is to a program of threads: all fibers share a thread, so that a thread_local would be shared by all
// ranks.
//
// A fiber's T is destroyed in that fiber when its work has ended, what was made last first, with LibTorch's state of
// the rank in place; that of a fiber that could not be unwound, with its world. In an OpenMP region the fiber's own
// thread finds the fiber's T, a thread that helps it one of its own.
//
// A FiberLocal has static storage duration: its slot is never given to another one. A lookup is three loads behind one
// call (1 to 2 ns) and takes no lock.
template <class T>
class FiberLocal {
 public:
  FiberLocal() noexcept : slot_(detail::new_fiber_local_slot()) {}
  FiberLocal(const FiberLocal&) = delete;
  FiberLocal& operator=(const FiberLocal&) = delete;

  // This fiber's T. The reference is valid until the fiber ends. T's constructor may suspend, but must not ask for it.
  T& get() const {
    if (T* const found = find()) return *found;
    auto made = std::make_unique<T>();
    detail::keep_fiber_local(slot_, made.get(), [](void* kept) noexcept { delete static_cast<T*>(kept); });
    return *made.release();
  }

  // As get(), but null where get() has not been called.
  T* find() const noexcept { return static_cast<T*>(detail::find_fiber_local(slot_)); }

  T& operator*() const { return get(); }
  T* operator->() const { return &get(); }

 private:
  const std::size_t slot_;
};

}  // namespace rehearse::exec
