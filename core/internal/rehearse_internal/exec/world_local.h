// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

namespace rehearse::exec {

// An object that all ranks of a world share. The code that starts the world lends it; code that does not know worlds
// finds it here. find() returns null if nobody has lent an object to the thread's worlds, and in threads that help a
// rank in an OpenMP region.
template <class T>
class WorldLocal {
 public:
  // While it lives, `object` is lent to the worlds of this thread.
  class Lent {
   public:
    explicit Lent(T& object) noexcept : before_(std::exchange(t_object, &object)) {}
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() { t_object = before_; }

   private:
    T* const before_;
  };

  static T* find() noexcept { return t_object; }

 private:
  static inline constinit thread_local T* t_object = nullptr;
};

}  // namespace rehearse::exec
