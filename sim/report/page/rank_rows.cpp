// SPDX-License-Identifier: BSD-3-Clause
#include "report/page/rank_rows.h"

#include <algorithm>
#include <map>

#include "report/page/timeline_json.h"
#include "report/writers/rank_groups.h"

namespace rehearse::sim {
namespace {

Json row_json(const RankGroup& group) {
  const RankLine& line = *group.line;
  Json json{{"ranks", rank_runs(group.ranks)}, {"state", to_string(line.state)}};
  if (!group.times.empty()) json["times_ns"] = rank_times(group.times);
  if (!line.doing.empty()) json["doing"] = line.doing;
  if (!line.last.empty()) json["last"] = line.last + line.last_where.at();
  if (!line.where.empty()) json["where"] = line.where.text;
  if (!group.waits_for.empty()) json["waits_for"] = rank_runs(group.waits_for);
  return json;
}

// Keeps the groups with the rarest states, in the order of their ranks.
void keep_most_telling(std::vector<RankGroup>& groups, std::size_t most) {
  std::map<RankOutcome, std::size_t> ranks_in_state;
  for (const auto& group : groups) ranks_in_state[group.line->state] += group.ranks.size();
  std::ranges::stable_sort(groups, [&](const RankGroup& a, const RankGroup& b) {
    return ranks_in_state[a.line->state] < ranks_in_state[b.line->state];
  });
  groups.resize(most);
  std::ranges::sort(groups, [](const RankGroup& a, const RankGroup& b) { return a.ranks.front() < b.ranks.front(); });
}

}  // namespace

RankRows rank_rows(const std::vector<RankLine>& lines, std::size_t most) {
  auto groups = rank_groups(lines);
  if (groups.size() > most) keep_most_telling(groups, most);
  RankRows result{Json::array(), lines.size()};
  for (const auto& group : groups) {
    result.rows.push_back(row_json(group));
    result.ranks_left_out -= group.ranks.size();
  }
  return result;
}

}  // namespace rehearse::sim
