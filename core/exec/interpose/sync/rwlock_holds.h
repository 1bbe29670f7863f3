// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

namespace rehearse::exec {
class Fiber;
}

namespace rehearse::exec::interpose {

// The reader-writer locks that the fibers of one world hold. Kept here because libc only counts readers, and identifies
// a writer by its thread. A vector, because a world holds few such locks at a time, and only briefly.
class RwlockHolds {
 public:
  struct Hold {
    const void* lock;
    std::size_t readers;
    const Fiber* writer;
  };

  const Hold* find(const void* lock) const noexcept {
    for (auto hold = holds_.rbegin(); hold != holds_.rend(); ++hold) {
      if (hold->lock == lock) return &*hold;
    }
    return nullptr;
  }

  void add_reader(const void* lock) { ++find_or_add(lock).readers; }
  void add_writer(const void* lock, const Fiber& writer) { find_or_add(lock).writer = &writer; }

  void remove(const void* lock) noexcept {
    auto* const hold = const_cast<Hold*>(find(lock));
    if (hold == nullptr) return;
    if (hold->writer != nullptr) {
      hold->writer = nullptr;
    } else {
      --hold->readers;
    }
    if (hold->readers > 0) return;
    *hold = holds_.back();
    holds_.pop_back();
  }

 private:
  Hold& find_or_add(const void* lock) {
    if (auto* const hold = const_cast<Hold*>(find(lock))) return *hold;
    return holds_.emplace_back(Hold{lock, 0, nullptr});
  }

  std::vector<Hold> holds_;
};

}  // namespace rehearse::exec::interpose
