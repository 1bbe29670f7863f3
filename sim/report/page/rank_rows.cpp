// SPDX-License-Identifier: BSD-3-Clause
#include "report/page/rank_rows.h"

#include <algorithm>
#include <functional>

#include "report/page/timeline_json.h"
#include "report/writers/rank_groups.h"

namespace rehearse::sim {
namespace {

Json times_json(const std::vector<VirtualTime>& times) {
  const bool all_equal = std::adjacent_find(times.begin(), times.end(), std::not_equal_to<>()) == times.end();
  Json json = Json::array();
  for (const auto time : times) {
    json.push_back(time.time_since_epoch().count());
    if (all_equal) break;
  }
  return json;
}

Json row_json(const RankGroup& group) {
  const RankLine& line = *group.line;
  Json json{{"ranks", rank_runs(group.ranks)}, {"state", to_string(line.state)}};
  if (!group.times.empty()) json["times_ns"] = times_json(group.times);
  if (!line.doing.empty()) json["doing"] = line.doing;
  if (!line.last.empty()) json["last"] = line.last;
  if (!line.where.empty()) json["where"] = line.where;
  if (!line.waits_for.empty()) json["waits_for"] = rank_runs(line.waits_for);
  return json;
}

}  // namespace

Json rank_rows(const std::vector<RankLine>& lines) {
  Json rows = Json::array();
  for (const auto& group : rank_groups(lines)) rows.push_back(row_json(group));
  return rows;
}

}  // namespace rehearse::sim
