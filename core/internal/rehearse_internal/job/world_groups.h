// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <map>

#include <rehearse/job/group.h>

namespace rehearse {

// The world group of each rank of a world, for world_group(). If ranks are fibers, the world lends it
// (exec::WorldLocal).
class WorldGroups {
 public:
  // While it lives, `group` is the world group of `rank`. `groups` and `group` must outlive it.
  class Entry {
   public:
    Entry(WorldGroups& groups, int rank, const Group& group) : groups_(groups), rank_(rank), group_(group) {
      groups_.of_rank_[rank] = &group;
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    // The next incarnation of the rank may have an entry already, which must stay.
    ~Entry() {
      const auto found = groups_.of_rank_.find(rank_);
      if (found != groups_.of_rank_.end() && found->second == &group_) groups_.of_rank_.erase(found);
    }

   private:
    WorldGroups& groups_;
    const int rank_;
    const Group& group_;
  };

  // While it lives, `group` is the world group of all threads of this process, which is one rank. `group` must outlive
  // it.
  class OfProcess {
   public:
    explicit OfProcess(const Group& group) noexcept : before_(of_process_.exchange(&group)) {}
    OfProcess(const OfProcess&) = delete;
    OfProcess& operator=(const OfProcess&) = delete;
    ~OfProcess() { of_process_ = before_; }

   private:
    const Group* const before_;
  };

  // The world group of the calling rank. Unlike world_group(), does not note the use for a capture. Null outside of a
  // rank.
  static const Group* find();

 private:
  static inline std::atomic<const Group*> of_process_ = nullptr;

  std::map<int, const Group*> of_rank_;
};

}  // namespace rehearse
