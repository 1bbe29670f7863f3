// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "fiber.h"

namespace rehearse::exec {

// The fibers of a world, by Fiber::id, each followed by room for its image. They are side by side in memory. Scattered
// among other allocations, each would occupy a page or two, and a core caches the addresses of only a thousand or two
// pages.
class FiberTable final : public FiberFacts {
 public:
  FiberTable() = default;
  FiberTable(const FiberTable&) = delete;
  FiberTable& operator=(const FiberTable&) = delete;
  ~FiberTable();

  // Call it once, before any other function. `first`: how many fibers are certain to come.
  void prepare(std::size_t image_bytes, std::size_t first);

  // Adds a fiber with the next id, or with an id that was given back. If an id is reused, destroys the previous fiber
  // with that id; the new fiber takes its place in memory.
  Fiber& add();
  void give_back(std::uint32_t id);  // the fiber must have ended

  // Call it for a fiber that has not finished its work and will never run again. Objects to which its image refers are
  // then never freed, and LeakSanitizer must not report them.
  void note_left_behind() noexcept { left_behind_ = true; }

  Access next_access(std::uint32_t fiber) const override { return fibers_[fiber]->next_access; }

  Fiber& operator[](std::size_t id) const noexcept { return *fibers_[id]; }
  const std::vector<Fiber*>& all() const noexcept { return fibers_; }

 private:
  struct Free {
    void operator()(std::byte* block) const noexcept { ::operator delete(block, kAlignment); }
  };

  // Caches fetch lines in pairs: a fiber's last line and its image's first line are a pair.
  static constexpr std::align_val_t kAlignment{128};

  std::byte* room();

  std::size_t bytes_of_each_ = 0;
  std::vector<Fiber*> fibers_;
  std::vector<std::uint32_t> free_ids_;
  std::vector<std::unique_ptr<std::byte, Free>> blocks_;
  std::byte* next_ = nullptr;   // in the last block
  std::size_t left_ = 0;        // number of fibers for which the last block has room
  std::size_t next_block_ = 0;  // number of fibers in the next block
  bool left_behind_ = false;
};

}  // namespace rehearse::exec
