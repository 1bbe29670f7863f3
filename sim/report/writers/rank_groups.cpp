// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/rank_groups.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace rehearse::sim {
namespace {

constexpr std::size_t kApart = 16;  // up to this many groups, ranks that wait for each other have separate lines

using Alike = std::tuple<RankOutcome, std::string, std::string, std::string, std::string, std::vector<int>, bool>;

Alike key_of(const RankLine& line, std::vector<int> waits_for) {
  const bool is_timed = line.at != RankLine::kNotKnown;
  return {line.state, line.doing, line.last, line.last_where.text, line.where.text, std::move(waits_for), is_timed};
}

std::vector<int> union_of(const std::vector<int>& one, const std::vector<int>& other) {
  std::vector<int> both;
  std::set_union(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(both));
  return both;
}

void append(RankGroup& group, const RankGroup& other) {
  group.ranks.insert(group.ranks.end(), other.ranks.begin(), other.ranks.end());
  group.times.insert(group.times.end(), other.times.begin(), other.times.end());
}

// Merges ranks that each wait for all the others and that differ in nothing else.
std::vector<RankGroup> folded(const std::vector<RankGroup>& groups) {
  std::vector<RankGroup> result;
  std::map<Alike, std::size_t> known;
  for (const auto& group : groups) {
    if (group.waits_for.empty() || group.ranks.size() > 1) {
      result.push_back(group);
      continue;
    }
    auto together = union_of(group.waits_for, group.ranks);
    const auto [entry, is_new] = known.try_emplace(key_of(*group.line, together), result.size());
    if (is_new) {
      result.push_back(group);
      continue;
    }
    auto& whole = result[entry->second];
    append(whole, group);
    whole.waits_for = std::move(together);
  }
  return result;
}

}  // namespace

bool RankGroup::waits_for_each_other() const {
  return ranks.size() > 1 && std::includes(waits_for.begin(), waits_for.end(), ranks.begin(), ranks.end());
}

std::vector<RankGroup> rank_groups(const std::vector<RankLine>& lines) {
  std::vector<RankGroup> groups;
  std::map<Alike, std::size_t> known;
  for (const RankLine& line : lines) {
    const auto [entry, is_new] = known.try_emplace(key_of(line, line.waits_for), groups.size());
    if (is_new) groups.push_back({&line, {}, {}, line.waits_for});
    RankGroup& group = groups[entry->second];
    group.ranks.push_back(line.rank);
    if (line.at != RankLine::kNotKnown) group.times.push_back(line.at);
  }
  return groups.size() > kApart ? folded(groups) : groups;
}

Json rank_runs(const std::vector<int>& ranks) {
  Json runs = Json::array();
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    runs.push_back(ranks[first]);
    runs.push_back(ranks[last]);
    first = last + 1;
  }
  return runs;
}

}  // namespace rehearse::sim
