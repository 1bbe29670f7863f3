// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/culprits_text.h"

#include <algorithm>
#include <string_view>
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
  Place where;
  bool is_of_last_call = false;
  std::vector<int> ranks{};
};

const RankLine* line_of_culprit(const Report& report, int rank) {
  const auto& lines = report.rank_lines;
  const auto own = std::find_if(lines.begin(), lines.end(), [rank](const RankLine& line) { return line.rank == rank; });
  return own == lines.end() ? nullptr : &*own;
}

// Where the rank made the call that differs; empty: not known. By now its main thread may be elsewhere.
Place place_of_difference(const Report& report, int rank) {
  if (report.verdict != Verdict::mismatch || report.differences.empty()) return {};
  const auto& difference = report.differences.front();
  auto sides = difference.others;
  sides.insert(sides.end(), {difference.first, difference.second});
  const auto own = std::find_if(sides.begin(), sides.end(), [rank](const Difference::Side& side) {
    return std::find(side.ranks.begin(), side.ranks.end(), rank) != side.ranks.end();
  });
  return own == sides.end() ? Place() : own->where;
}

CulpritPlace place_of_culprit(const Report& report, int rank) {
  if (!report.findings.empty() && !report.findings.front().where.empty())
    return {report.findings.front().where, false, {rank}};
  if (auto where = place_of_difference(report, rank); !where.empty()) return {std::move(where), false, {rank}};
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
  auto ranks = describe_ranks(place.ranks);
  if (place.where.empty() || !place.is_of_last_call) return ranks + place.where.at();
  const auto* const calls = place.ranks.size() == 1 ? "its last call" : "their last calls";
  return fmt::format("{}, after {}{}", ranks, calls, place.where.at());
}

// True if the text has a place. The element of a tensor, "at [0, 1]", is none.
bool says_where(const std::string& text) {
  constexpr std::string_view kAt = " at ";
  for (auto at = text.find(kAt); at != std::string::npos; at = text.find(kAt, at + 1)) {
    if (!text.substr(at + kAt.size()).starts_with('[')) return true;
  }
  return false;
}

// False if the headline already has all places, or if more than half of the ranks are culprits (as in a ring, or if
// only one rank made a call): then the line would single out nobody.
bool is_worth_a_line(const Report& report, const std::vector<CulpritPlace>& places, std::size_t culprits) {
  const auto is_in_headline = [&](const CulpritPlace& place) {
    return place.where.empty() || report.headline.find(place.where.at()) != std::string::npos;
  };
  // A finding says where the tensor was touched. By now the rank's main thread may be elsewhere.
  const bool is_told = is_found_by_checker(report) && says_where(report.headline);
  return 2 * culprits <= report.rank_lines.size() && !is_told &&
         !std::all_of(places.begin(), places.end(), is_in_headline);
}

// Says how the trouble began, because this tells more than where the culprits ended: where they fell out of step or
// threw, or which call they left out. Empty if the report has no such cause of these culprits.
std::string beginning_of(const Report& report, const std::vector<int>& culprits) {
  const auto find = [&](Cause::Kind kind) -> const Cause* {
    for (const auto& cause : report.causes) {
      if (cause.kind == kind && cause.ranks == culprits) return &cause;
    }
    return nullptr;
  };
  const auto ranks = describe_ranks(culprits);
  if (const auto* const cause = find(Cause::Kind::out_of_step))
    return fmt::format("{}, out of step from {} on", ranks, cause->call);
  if (const auto* const cause = find(Cause::Kind::ended_without))
    return fmt::format("{}, which {} ended without {}", ranks, culprits.size() == 1 ? "has" : "have", cause->call);
  if (const auto* const cause = find(Cause::Kind::held_up))
    return fmt::format("{}, whose data in {} moved later", ranks, cause->call);
  const auto* const cause = find(Cause::Kind::threw);
  if (cause != nullptr && !cause->where.empty()) return fmt::format("{}, which threw{}", ranks, cause->where.at());
  return "";
}

// If a rank made another call than the others, it may have left a loop early. Says how often it called from the line
// where the others are: ", after 4 calls from train.cpp:8 in step; ranks 0,2-3 made 5". Empty if it is not known that
// the culprits called from there less often than the others.
std::string calls_before(const Report& report, const std::vector<int>& culprits) {
  if (report.verdict != Verdict::mismatch || report.differences.empty()) return "";
  const auto& others = report.differences.front().first;
  for (const auto& counts : report.call_counts) {
    if (counts.where != others.where || counts.sides.size() != 2) continue;
    const auto& [most, fewest] = std::pair(counts.sides[0], counts.sides[1]);
    if (fewest.ranks != culprits || most.ranks != others.ranks || fewest.times >= most.times) continue;
    return fmt::format(", after {} call{} from {}; {} made {}", fewest.times, fewest.times == 1 ? "" : "s",
                       counts.where.text, describe_ranks(most.ranks), most.times);
  }
  return "";
}

// True if the program's own check failed. Then the rank on which the check failed need not be to blame.
bool is_of_own_check(const Report& report) {
  const auto is_failed = [](const RankLine& line) { return line.state == RankOutcome::failed; };
  return report.verdict == Verdict::check_failed && report.findings.empty() &&
         std::any_of(report.rank_lines.begin(), report.rank_lines.end(), is_failed);
}
}  // namespace

std::string culprits_text(const Report& report, std::size_t width) {
  const auto culprits = culprits_of(report);
  const auto places = places_of_culprits(report, culprits);
  const auto* const label = is_of_own_check(report) ? "failed check: "
                            : culprits.size() == 1  ? "culprit: "
                                                    : "culprits: ";
  if (const auto begin = culprits.empty() ? "" : beginning_of(report, culprits); !begin.empty())
    return wrapped(label, begin, width, 2) + "\n";
  if (culprits.empty() || (!report.dumps && !is_worth_a_line(report, places, culprits.size()))) return "";
  std::vector<std::string> texts;
  for (const auto& place : places) {
    if (texts.size() == kCulpritsShown) break;
    texts.push_back(text_of_culprits(place));
  }
  if (texts.size() < places.size()) texts.push_back(fmt::format("and {} more", places.size() - texts.size()));
  return wrapped(label, fmt::format("{}{}", fmt::join(texts, "; "), calls_before(report, culprits)), width, 2) + "\n";
}

}  // namespace rehearse::sim
