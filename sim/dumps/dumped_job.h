// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <rehearse_internal/comm/group_identity.h>

#include "dumps/dump.h"

namespace rehearse::sim {

// A group, put together from the dumps of its members.
struct JobGroup {
  comm::GroupIdentity identity;
  std::string description;
  // False: the dumps with calls on the group do not list its members, so name_groups() guesses them.
  bool members_are_known = true;
  std::map<int, std::vector<const DumpedCall*>> calls;  // by rank of the world, for ranks with dumps; oldest first
};

// The dumps of one job taken together: its ranks and groups, and which ranks left a dump. The dumps must outlive this
// object.
class DumpedJob {
 public:
  // Throws DumpError if the dumps do not belong to one job: see require_one_job().
  explicit DumpedJob(const std::vector<Dump>& dumps);

  int ranks() const noexcept { return ranks_; }
  const std::vector<Dump>& dumps() const noexcept { return dumps_; }
  // Null: the rank left no dump.
  const Dump* dump_of(int rank) const { return by_rank_[static_cast<std::size_t>(rank)]; }
  std::vector<int> without_dump() const;
  const std::vector<JobGroup>& groups() const noexcept { return groups_; }
  std::size_t calls() const;

 private:
  void add_groups(const Dump& dump);
  void add_calls(const Dump& dump);
  JobGroup& group_of(const Dump& dump, const DumpedCall& call);
  void name_groups();

  // Name and members identify a group: ranks that split a group differently may give one name to several groups.
  using Key = std::pair<std::string, std::vector<int>>;

  const std::vector<Dump>& dumps_;
  int ranks_ = 0;
  std::vector<const Dump*> by_rank_;
  std::vector<JobGroup> groups_;  // by the lowest rank with a call on the group, then by that rank's first call on it
  std::map<Key, std::size_t> known_;
};

}  // namespace rehearse::sim
