// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>

namespace rehearse::exec {

namespace detail {

std::size_t new_fiber_local_slot() noexcept;

// The object that the running fiber (or the thread, outside of fibers) keeps in `slot`; null if there is none yet.
void* find_fiber_local(std::size_t slot) noexcept;

// Puts `made` into the empty `slot`; `destroy` is called when the fiber ends. If keep_fiber_local() throws, the caller
// still owns `made`.
void keep_fiber_local(std::size_t slot, void* made, void (*destroy)(void*) noexcept);

}  // namespace detail

// One T for each fiber, value-initialised at the fiber's first access; outside of fibers one for each thread. Use it
// instead of thread_local, which all ranks would share.
//
// A fiber's T is destroyed in that fiber when its work has ended, in reverse order of construction, with the rank's
// LibTorch state in place. If a fiber could not be unwound, its T is destroyed with the world. In an OpenMP region, the
// fiber's own thread finds the fiber's T, and a helper thread finds its own.
//
// A FiberLocal must have static storage duration, because slots are never reused. A lookup is three loads behind one
// call (1 to 2 ns) and takes no lock.
template <class T>
class FiberLocal {
 public:
  FiberLocal() noexcept : slot_(detail::new_fiber_local_slot()) {}
  FiberLocal(const FiberLocal&) = delete;
  FiberLocal& operator=(const FiberLocal&) = delete;

  // The reference is valid until the fiber ends. T's constructor may suspend, but must not call get() of this
  // FiberLocal.
  T& get() const {
    if (T* const found = find()) return *found;
    auto made = std::make_unique<T>();
    detail::keep_fiber_local(slot_, made.get(), [](void* kept) noexcept { delete static_cast<T*>(kept); });
    return *made.release();
  }

  // Like get(), but null if get() has not been called.
  T* find() const noexcept { return static_cast<T*>(detail::find_fiber_local(slot_)); }

  T& operator*() const { return get(); }
  T* operator->() const { return &get(); }

 private:
  const std::size_t slot_;
};

}  // namespace rehearse::exec
