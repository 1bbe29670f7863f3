// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>

#include <rehearse/exec/wait_queue.h>

namespace rehearse::exec::interpose {

// Fibers that wait for libc objects, by the object's address. An address is in the table only while a fiber waits for
// it, so a destroyed object and a new one at its address do not affect each other. The address only finds an entry; no
// order depends on it.
class WaitTable {
 public:
  // See WaitQueue.
  std::optional<WaitResult> wait_or_end(const void* object, const Observer& observer,
                                        std::optional<VirtualTime> deadline = std::nullopt) {
    Use use(*this, object);
    return use.queue().wait_or_end(observer, deadline);
  }
  bool linger(const void* object, const Observer& observer) {
    Use use(*this, object);
    return use.queue().linger(observer);
  }

  bool notify_one(const void* object) {
    const auto found = entries_.find(object);
    return found != entries_.end() && found->second.queue.notify_one();
  }
  std::size_t notify_all(const void* object) {
    const auto found = entries_.find(object);
    return found == entries_.end() ? 0 : found->second.queue.notify_all();
  }

  bool empty() const noexcept { return entries_.empty(); }

 private:
  struct Entry {
    WaitQueue queue;
    std::size_t users = 0;
  };

  class Use {
   public:
    Use(WaitTable& table, const void* object) : table_(table), object_(object), entry_(table.entries_[object]) {
      ++entry_.users;
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      if (--entry_.users == 0) table_.entries_.erase(object_);
    }
    WaitQueue& queue() noexcept { return entry_.queue; }

   private:
    WaitTable& table_;
    const void* object_;
    Entry& entry_;
  };

  std::unordered_map<const void*, Entry> entries_;
};

}  // namespace rehearse::exec::interpose
