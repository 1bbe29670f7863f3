// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/job/report.h>

namespace rehearse::sim {

// Ranks that ended alike, at whatever time.
struct RankGroup {
  const RankLine* line = nullptr;  // of the first of them
  std::vector<int> ranks;
  std::vector<VirtualTime> times;  // in the order of `ranks`; empty: not known
};

// In the order of their first lines. Points into `lines`.
std::vector<RankGroup> rank_groups(const std::vector<RankLine>& lines);

}  // namespace rehearse::sim
