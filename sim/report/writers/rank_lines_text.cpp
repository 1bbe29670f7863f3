// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/rank_lines_text.h"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/sim/format_time.h>

#include "report/writers/rank_groups.h"
#include "report/writers/text_lines.h"

namespace rehearse::sim {
namespace {

constexpr std::size_t kGroupsShown = 16;  // lines for ranks
constexpr std::size_t kFurtherLines = 3;  // lines of an exception's text after its first, including the last
constexpr std::size_t kLabelWidthMax = 24;

using Group = RankGroup;

// If there are too many groups, the groups with the rarest states stay, because the reader looks for the one failed
// rank of 1,024.
std::vector<Group> most_telling(std::vector<Group> groups) {
  if (groups.size() <= kGroupsShown) return groups;
  std::map<RankOutcome, std::size_t> ranks_in_state;
  for (const Group& group : groups) ranks_in_state[group.line->state] += group.ranks.size();
  std::ranges::stable_sort(groups, [&](const Group& a, const Group& b) {
    return ranks_in_state[a.line->state] < ranks_in_state[b.line->state];
  });
  groups.resize(kGroupsShown);
  std::ranges::sort(groups, [](const Group& a, const Group& b) { return a.ranks[0] < b.ranks[0]; });
  return groups;
}

// For example "waits for rank 2", or, if ranks also wait for each other, "wait for each other and for rank 2".
std::string waits(const Group& group) {
  const auto* const wait = group.ranks.size() == 1 ? "waits for " : "wait for ";
  if (group.waits_for == group.ranks && group.ranks.size() == 1) return std::string(wait) + "itself";
  if (!group.waits_for_each_other()) return wait + describe_ranks(group.waits_for);
  std::vector<int> others;
  std::set_difference(group.waits_for.begin(), group.waits_for.end(), group.ranks.begin(), group.ranks.end(),
                      std::back_inserter(others));
  return "wait for each other" + (others.empty() ? "" : " and for " + describe_ranks(others));
}

// How the ranks ended, and where. The place of a failure stands before its text, which may be long.
std::vector<std::string> ends(const RankLine& line) {
  const auto place = line.where.empty() ? "" : "at " + line.where.text;
  std::string text(to_string(line.state)), doing(first_line(line.doing));
  if (line.state == RankOutcome::failed) {
    return {fmt::format("{}{}{}{}{}", text, place.empty() ? "" : " ", place, doing.empty() ? "" : ": ", doing)};
  }
  if (line.state == RankOutcome::stopped) {
    text = doing.empty() ? "still running" : doing;
  } else if (!doing.empty()) {
    text += " in " + doing;
  }
  if (place.empty()) return {text};
  return {text + ",", place};
}

std::string time_of(const Group& group) {
  const auto [earliest, latest] = std::minmax_element(group.times.begin(), group.times.end());
  const auto from = "t=" + format_time(*earliest);
  return *latest == *earliest ? from : from + " to " + format_time(*latest);
}

// For whom the ranks wait, the time, and the last completed call with its place. That call comes last, so that the time
// does not seem to belong to it.
std::vector<std::string> circumstances(const Group& group, std::string_view clock) {
  const RankLine& line = *group.line;
  std::vector<std::string> parts;
  if (!group.waits_for.empty()) parts.push_back(waits(group));
  if (!group.times.empty()) parts.push_back(time_of(group) + (clock.empty() ? "" : fmt::format(" ({})", clock)));
  if (!line.last.empty()) {
    parts.push_back("last completed: " + line.last + line.last_where.at());
  }
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) parts[i] += ';';
  return parts;
}

// The lines of an exception's text after the first: the first few, and the last, which often says most.
std::string further_lines(std::string_view text, std::size_t indent, std::size_t width) {
  std::vector<std::string_view> lines;
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    text.remove_prefix(end + 1);
    if (const std::string_view line = first_line(text); !line.empty()) lines.push_back(line);
  }
  std::string result;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool shown = lines.size() <= kFurtherLines || i + 1 < kFurtherLines || i + 1 == lines.size();
    if (shown) result += wrapped(std::string(indent, ' '), lines[i], width, indent) + "\n";
    if (!shown && i + 1 == kFurtherLines) result += std::string(indent, ' ') + "...\n";
  }
  return result;
}

std::string group_text(const Group& group, std::string_view clock, std::size_t indent, std::size_t width) {
  const RankLine& line = *group.line;
  const auto label = fmt::format("{:{}} ", describe_ranks(group.ranks) + ":", indent - 1);
  auto rest = circumstances(group, clock);
  auto parts = ends(line);
  const std::string further = further_lines(line.doing, indent + 2, width);
  if (further.empty()) {
    if (!rest.empty()) parts.back() += ';';
    parts.insert(parts.end(), rest.begin(), rest.end());
    return wrapped(label, parts, width, indent) + "\n";
  }
  std::string text = wrapped(label, parts, width, indent) + "\n" + further;
  if (!rest.empty()) text += wrapped(std::string(indent, ' '), rest, width, indent) + "\n";
  return text;
}

}  // namespace

std::string rank_lines_text(const std::vector<RankLine>& lines, std::string_view clock, std::size_t width) {
  const auto groups = most_telling(rank_groups(lines));
  std::size_t label_width = 0;
  for (const Group& group : groups) label_width = std::max(label_width, describe_ranks(group.ranks).size());
  const std::size_t indent = std::min(label_width, kLabelWidthMax) + 2;

  std::string text;
  std::size_t ranks_shown = 0;
  for (const Group& group : groups) {
    text += group_text(group, clock, indent, width);
    if (!group.times.empty()) clock = "";
    ranks_shown += group.ranks.size();
  }
  if (ranks_shown < lines.size()) text += fmt::format("... and {} more ranks\n", lines.size() - ranks_shown);
  return text;
}

}  // namespace rehearse::sim
