// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>

#include <rehearse/job/group.h>

namespace rehearse {

// The group of all ranks for each rank of a world; world_group() looks here. Lent by the world (exec::WorldLocal).
class WorldGroups {
 public:
  // While it lives, `group` is the world group of `rank`. Both must outlive it.
  class Entry {
   public:
    Entry(WorldGroups& groups, int rank, const Group& group) : groups_(groups), rank_(rank), group_(group) {
      groups_.of_rank_[rank] = &group;
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    // The next incarnation of the rank may have registered already.
    ~Entry() {
      const auto found = groups_.of_rank_.find(rank_);
      if (found != groups_.of_rank_.end() && found->second == &group_) groups_.of_rank_.erase(found);
    }

   private:
    WorldGroups& groups_;
    const int rank_;
    const Group& group_;
  };

  // The group of the calling rank. Does not tell a capture that it is used. Null outside of a rank.
  static const Group* find();

 private:
  std::map<int, const Group*> of_rank_;
};

}  // namespace rehearse
