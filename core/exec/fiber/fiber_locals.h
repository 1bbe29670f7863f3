// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

namespace rehearse::exec {

// What one fiber (or thread) keeps for the FiberLocals that it has used.
class FiberLocals {
 public:
  FiberLocals() = default;
  FiberLocals(const FiberLocals&) = delete;
  FiberLocals& operator=(const FiberLocals&) = delete;
  ~FiberLocals() { clear(); }

  void* find(std::size_t slot) const noexcept { return slot < slots_.size() ? slots_[slot] : nullptr; }
  void keep(std::size_t slot, void* made, void (*destroy)(void*) noexcept);

  // Destroys all, the last first; also those that destructors make.
  void clear() noexcept;

 private:
  struct Kept {
    std::size_t slot;
    void (*destroy)(void*) noexcept;
  };

  std::vector<void*> slots_;
  std::vector<Kept> made_;  // in the order in which they were made
};

}  // namespace rehearse::exec
