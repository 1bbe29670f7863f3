// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>

#include <rehearse/job/group.h>

namespace rehearse {

// The world group of each rank of a world, for world_group(). Lent by the world (exec::WorldLocal).
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

  // The world group of the calling rank. Unlike world_group(), does not note the use for a capture. Null outside of a
  // rank.
  static const Group* find();

 private:
  std::map<int, const Group*> of_rank_;
};

}  // namespace rehearse
