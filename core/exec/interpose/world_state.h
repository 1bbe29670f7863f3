// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/clock_jump.h>

#include "exec/executor/world_outcome.h"
#include "exec/executor/world_parts.h"
#include "exec/interpose/process/children.h"
#include "exec/interpose/process/process_state.h"
#include "exec/interpose/sync/initialisations.h"
#include "exec/wait/polling.h"
#include "outside_wait.h"
#include "wait_table.h"

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

// The fibers of one world that wait at pthread barriers. Contains a barrier only while a fiber waits there.
class BarrierTable {
 public:
  unsigned arrive(const void* barrier) { return ++arrived_[barrier]; }

  unsigned arrived(const void* barrier) const {
    const auto found = arrived_.find(barrier);
    return found != arrived_.end() ? found->second : 0;
  }

  // Call it when all have arrived: wakes the waiting fibers.
  void open(const void* barrier) {
    arrived_.erase(barrier);
    waiters.notify_all(barrier);
  }

  // Call it when a fiber that has arrived stops waiting, because its run ends: the fiber no longer counts.
  void leave(const void* barrier) {
    const auto found = arrived_.find(barrier);
    if (found != arrived_.end() && --found->second == 0) arrived_.erase(found);
  }

  WaitTable waiters;

 private:
  std::unordered_map<const void*, unsigned> arrived_;
};

// A thread that a rank made: a helper fiber of that rank.
struct MadeThread {
  bool finished = false;
  bool detached = false;
  void* result = nullptr;
  std::string name;
  WaitQueue joiners;
};

// The threads that the ranks of one world have made, and have neither joined nor detached.
class ThreadTable {
 public:
  // A handle is no valid address, so that a libc function that gets a handle despite our replacements fails at once
  // instead of reading arbitrary memory.
  static pthread_t handle_of(int rank, std::uint32_t fiber_of_rank) noexcept {
    return (kMark << 48) | (static_cast<pthread_t>(rank) << 28) | fiber_of_rank;
  }
  static bool is_handle(pthread_t thread) noexcept { return thread >> 48 == kMark; }
  static std::uint32_t fiber_of_rank(pthread_t handle) noexcept {
    return static_cast<std::uint32_t>(handle & ((pthread_t{1} << 28) - 1));
  }

  void add(pthread_t handle, std::shared_ptr<MadeThread> thread) { threads_.emplace(handle, std::move(thread)); }
  std::shared_ptr<MadeThread> find(pthread_t handle) const {
    const auto found = threads_.find(handle);
    return found != threads_.end() ? found->second : nullptr;
  }
  void remove(pthread_t handle) { threads_.erase(handle); }

 private:
  static constexpr pthread_t kMark = 0x5245;

  std::unordered_map<pthread_t, std::shared_ptr<MadeThread>> threads_;
};

// The value that we write where libc keeps the thread id of a lock's owner: the world and the fiber. Always negative,
// so it is never a thread id. No two living worlds have the same number.
class OwnerTags {
 public:
  OwnerTags();
  OwnerTags(const OwnerTags&) = delete;
  OwnerTags& operator=(const OwnerTags&) = delete;
  ~OwnerTags();

  // The value of Fiber::owner_tag.
  std::int32_t of(std::uint32_t fiber_id) const noexcept {
    return base_ | static_cast<std::int32_t>(fiber_id & kFiberMask);
  }

  enum class Holder { nobody, other_thread, this_thread, this_world, ended_world };
  Holder classify(std::int32_t owner) const noexcept;

  // The owner must belong to this world.
  static std::uint32_t fiber_id(std::int32_t owner) noexcept { return static_cast<std::uint32_t>(owner) & kFiberMask; }

  std::int32_t thread_id() const noexcept { return thread_id_; }

 private:
  static constexpr unsigned kFiberBits = 20;
  static constexpr std::uint32_t kFiberMask = (std::uint32_t{1} << kFiberBits) - 1;

  std::int32_t base_;
  std::int32_t thread_id_;
};

// The state of the interposed functions for one world. Destroyed with the world's executor, so nothing of an ended
// world can reach the next one.
struct WorldState {
  OwnerTags tags;
  WaitTable conditions;
  WaitTable locks;  // mutexes and reader-writer locks
  WaitTable semaphores;
  WaitTable futexes;
  BarrierTable barriers;
  RwlockHolds rwlock_holds;
  Initialisations guards;
  Initialisations onces;
  ThreadTable threads;
  ProcessStates processes;
  Children children;
  OutsideWaits outside_waits;
  std::map<int, std::uint32_t> listing_orders;  // by rank; see folders.cpp
  std::vector<ClockJump> clock_jumps;           // by rank; empty: no clock has jumped

  WorldState() = default;
  WorldState(const WorldState&) = delete;
  WorldState& operator=(const WorldState&) = delete;
  // Gives up initialisations from which fibers never returned (see FiberLife::leave_behind()).
  ~WorldState();
};

inline WorldState& world_of(const Fiber& fiber) noexcept { return fiber.world->interposed; }

// Call it when pthread_mutex_trylock() or a similar call has failed. The call counts as a poll, because a rank that
// tries repeatedly must let the others run. While a rank unwinds, a poll would throw, so the first 1,000 tries are
// free.
inline void poll_in_vain(Fiber& fiber) {
  constexpr std::uint32_t polls_at_the_end = 1'000;
  if (!fiber.world->outcome.ended_for(fiber) || ++fiber.polls > polls_at_the_end) poll(fiber);
}

// The state of the world that runs on this thread, even while no fiber runs (a timer fires); null: there is no world.
inline WorldState* world_of_host() noexcept {
  RankExecutor* const executor = RankExecutor::current();
  return executor != nullptr ? &executor->parts().interposed : nullptr;
}

}  // namespace rehearse::exec::interpose
