// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/job/report.h>

#include "report/writers/json.h"

namespace rehearse::sim {

// Ranks that ended alike, in the same place, so that one line can describe all of them.
struct RankGroup {
  const RankLine* line = nullptr;  // the line of the first rank
  std::vector<int> ranks;
  std::vector<VirtualTime> times;  // one for each rank; empty: unknown
  std::vector<int> waits_for;      // may include ranks of the group, which then wait for each other

  bool waits_for_each_other() const;  // each waits for all others of the group
};

// Groups are in the order of their first ranks. `lines` must outlive the groups. If there are more than 16 groups,
// ranks that do the same and wait for each other share a group.
std::vector<RankGroup> rank_groups(const std::vector<RankLine>& lines);

// Ranks as runs, each by its first and last rank: 0, 1, 2 and 5 become [0, 2, 5, 5]. Keeps the order of the ranks.
Json rank_runs(const std::vector<int>& ranks);

}  // namespace rehearse::sim
