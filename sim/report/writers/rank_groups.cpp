// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/rank_groups.h"

#include <cstddef>
#include <map>
#include <string>
#include <tuple>

namespace rehearse::sim {

std::vector<RankGroup> rank_groups(const std::vector<RankLine>& lines) {
  using Story = std::tuple<RankOutcome, std::string, std::string, std::string, std::vector<int>, bool>;
  std::vector<RankGroup> groups;
  std::map<Story, std::size_t> known;
  for (const RankLine& line : lines) {
    const bool has_time = line.at != RankLine::kNotKnown;
    const auto [entry, is_new] =
        known.try_emplace({line.state, line.doing, line.last, line.where, line.waits_for, has_time}, groups.size());
    if (is_new) groups.push_back({&line, {}, {}});
    RankGroup& group = groups[entry->second];
    group.ranks.push_back(line.rank);
    if (has_time) group.times.push_back(line.at);
  }
  return groups;
}

}  // namespace rehearse::sim
