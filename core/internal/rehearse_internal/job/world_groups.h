// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>

#include <rehearse/job/group.h>

namespace rehearse {

// The group of all ranks, as each rank of a world has it: how world_group() finds it. Lent by the world
// (exec::WorldLocal).
class WorldGroups {
 public:
  // While it lives, `group` is that of `rank`. Both outlive it.
  class Entry {
   public:
    Entry(WorldGroups& groups, int rank, const Group& group) : groups_(groups), rank_(rank), group_(group) {
      groups_.of_rank_[rank] = &group;
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    // A rank that begins again may be there already.
    ~Entry() {
      const auto found = groups_.of_rank_.find(rank_);
      if (found != groups_.of_rank_.end() && found->second == &group_) groups_.of_rank_.erase(found);
    }

   private:
    WorldGroups& groups_;
    const int rank_;
    const Group& group_;
  };

  // That of the calling rank, without telling a capture that it is used. Null outside of a rank.
  static const Group* find();

 private:
  std::map<int, const Group*> of_rank_;
};

}  // namespace rehearse
