// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace rehearse::exec {

// The objects of one fiber (or thread) for the FiberLocal variables that it has used. Consists of one pointer, which is
// null until there is an object.
class FiberLocals {
 public:
  FiberLocals() = default;
  FiberLocals(const FiberLocals&) = delete;
  FiberLocals& operator=(const FiberLocals&) = delete;
  ~FiberLocals() { clear(); }

  void* find(std::size_t slot) const noexcept { return kept_ != nullptr ? find_kept(slot) : nullptr; }
  void keep(std::size_t slot, void* made, void (*destroy)(void*) noexcept);

  // Destroys all objects in reverse order of creation, including those that destructors create.
  void clear() noexcept;

 private:
  struct Kept;
  void* find_kept(std::size_t slot) const noexcept;

  Kept* kept_ = nullptr;
};

}  // namespace rehearse::exec
