// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/job/report.h>

namespace rehearse::sim {

// Ranks that ended alike, in the same place, so that one line can tell of all of them.
struct RankGroup {
  const RankLine* line = nullptr;  // of the first
  std::vector<int> ranks;
  std::vector<VirtualTime> times;  // of each rank; empty: not known
  std::vector<int> waits_for;      // ranks of the group among them: each of these waits for the others

  bool waits_for_each_other() const;  // for all others of the group
};

// In the order of their first ranks. The lines outlive them. Of many ranks, those that do the same and wait for each
// other are one group.
std::vector<RankGroup> rank_groups(const std::vector<RankLine>& lines);

}  // namespace rehearse::sim
