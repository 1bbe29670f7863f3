// SPDX-License-Identifier: BSD-3-Clause
#include "places.h"

#include <algorithm>
#include <vector>

namespace corpus {
namespace {

template <class Sides>
void add_places(const Sides& sides, std::vector<std::string>& places) {
  for (const auto& side : sides) places.push_back(side.where.text);
}

std::vector<std::string> places_of(const rehearse::Report& report) {
  std::vector<std::string> places{report.headline};
  places.insert(places.end(), report.remarks.begin(), report.remarks.end());
  for (const auto& line : report.rank_lines) places.push_back(line.where.text);
  for (const auto& difference : report.differences) {
    places.push_back(difference.first.where.text);
    places.push_back(difference.second.where.text);
    add_places(difference.others, places);
  }
  for (const auto& call : report.call_places) add_places(call.sides, places);
  for (const auto& line : report.call_counts) places.push_back(line.where.text);
  for (const auto& finding : report.findings) {
    places.push_back(finding.headline);
    places.insert(places.end(), finding.details.begin(), finding.details.end());
  }
  return places;
}

}  // namespace

bool leads_to(const rehearse::Report& report, const std::string& place) {
  const auto named = place + " in ";
  const auto places = places_of(report);
  return std::any_of(places.begin(), places.end(),
                     [&](const std::string& text) { return text.find(named) != std::string::npos; });
}

bool says(const rehearse::Report& report, std::string_view pattern) {
  std::vector<std::string> lines = report.remarks;
  for (const auto& finding : report.findings) lines.insert(lines.end(), finding.details.begin(), finding.details.end());
  lines.push_back(report.hint);
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return fits(line, pattern); });
}

std::string with_place(std::string_view pattern, std::string_view place) {
  std::string text(pattern);
  for (auto at = text.find("{}"); at != std::string::npos; at = text.find("{}", at + place.size()))
    text.replace(at, 2, place);
  return text;
}

bool fits(std::string_view text, std::string_view pattern) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (;; text.remove_prefix(1)) {
    if (fits(text, pattern)) return true;
    if (text.empty()) return false;
  }
}

}  // namespace corpus
