// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/culprits_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/formatting/rank_list.h>

#include "report/writers/culprits.h"
#include "report/writers/text_lines.h"

namespace rehearse::sim {
namespace {

constexpr std::size_t kCulpritsShown = 3;

struct CulpritPlace {
  std::string where;  // "train.cpp:41 in step"; empty: not known
  bool is_of_last_call = false;
  std::vector<int> ranks{};
};
const RankLine* line_of_culprit(const Report& report, int rank) {
  const auto& lines = report.rank_lines;
  const auto own = std::find_if(lines.begin(), lines.end(), [rank](const RankLine& line) { return line.rank == rank; });
  return own == lines.end() ? nullptr : &*own;
}

CulpritPlace place_of_culprit(const Report& report, int rank) {
  const auto* const line = line_of_culprit(report, rank);
  if (line == nullptr) return {};
  if (!line->where.empty()) return {line->where, false, {rank}};
  return {line->last_where, true, {rank}};
}
std::vector<CulpritPlace> places_of_culprits(const Report& report, const std::vector<int>& ranks) {
  std::vector<CulpritPlace> places;
  for (const int rank : ranks) {
    auto own = place_of_culprit(report, rank);
    const auto same = std::find_if(places.begin(), places.end(), [&](const CulpritPlace& place) {
      return place.where == own.where && place.is_of_last_call == own.is_of_last_call;
    });
    if (same != places.end()) {
      same->ranks.push_back(rank);
    } else {
      places.push_back(std::move(own));
    }
  }
  return places;
}

std::string text_of_culprits(const CulpritPlace& place) {
  const auto ranks = describe_ranks(place.ranks);
  if (place.where.empty()) return ranks;
  if (!place.is_of_last_call) return ranks + " at " + place.where;
  const auto* const calls = place.ranks.size() == 1 ? "its last call" : "their last calls";
  return fmt::format("{}, after {} at {}", ranks, calls, place.where);
}

// False if the headline already has all places, or if more than half of the ranks are culprits (as in a ring, or if a
// single rank made a call): then the line would single out nobody.
bool is_worth_a_line(const Report& report, const std::vector<CulpritPlace>& places, std::size_t culprits) {
  const auto is_in_headline = [&](const CulpritPlace& place) {
    return place.where.empty() || report.headline.find(" at " + place.where) != std::string::npos;
  };
  return 2 * culprits <= report.rank_lines.size() && !std::all_of(places.begin(), places.end(), is_in_headline);
}
}  // namespace

std::string culprits_text(const Report& report, std::size_t width) {
  const auto culprits = culprits_of(report);
  const auto places = places_of_culprits(report, culprits);
  if (culprits.empty() || (!report.dumps && !is_worth_a_line(report, places, culprits.size()))) return "";
  std::vector<std::string> texts;
  for (const auto& place : places) {
    if (texts.size() == kCulpritsShown) break;
    texts.push_back(text_of_culprits(place));
  }
  if (texts.size() < places.size()) texts.push_back(fmt::format("and {} more", places.size() - texts.size()));
  const auto* const label = culprits.size() == 1 ? "culprit: " : "culprits: ";
  return wrapped(label, fmt::format("{}", fmt::join(texts, "; ")), width, 2) + "\n";
}

}  // namespace rehearse::sim
