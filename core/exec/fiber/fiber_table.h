// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "fiber.h"

namespace rehearse::exec {

// The fibers of a world, by Fiber::id, each with room for its image behind it. They lie side by side: among other
// allocations each would take a page or two for itself, and a core knows the addresses of a thousand or two at a time.
class FiberTable {
 public:
  FiberTable() = default;
  FiberTable(const FiberTable&) = delete;
  FiberTable& operator=(const FiberTable&) = delete;
  ~FiberTable();

  // Once, before any other call. `first`: so many fibers are sure to come.
  void prepare(std::size_t image_bytes, std::size_t first);

  // A new fiber with the next id, or with one that was given back: then in the place of that fiber, which is destroyed.
  Fiber& add();
  void give_back(std::uint32_t id);  // of a fiber that has ended

  // Call it for a fiber that has not ended and never will run again. What its image refers to is never freed, and
  // LeakSanitizer must not call that a leak.
  void note_left_behind() noexcept { left_behind_ = true; }

  Fiber& operator[](std::size_t id) const noexcept { return *fibers_[id]; }
  const std::vector<Fiber*>& all() const noexcept { return fibers_; }

 private:
  struct Free {
    void operator()(std::byte* block) const noexcept { ::operator delete(block, kAlignment); }
  };

  // Caches fetch lines in pairs: a fiber's last one, and the first one of its image.
  static constexpr std::align_val_t kAlignment{128};

  std::byte* room();

  std::size_t bytes_of_each_ = 0;
  std::vector<Fiber*> fibers_;
  std::vector<std::uint32_t> free_ids_;
  std::vector<std::unique_ptr<std::byte, Free>> blocks_;
  std::byte* next_ = nullptr;   // in the last block
  std::size_t left_ = 0;        // fibers that it has room for
  std::size_t next_block_ = 0;  // how many the next block is for
  bool left_behind_ = false;
};

}  // namespace rehearse::exec
