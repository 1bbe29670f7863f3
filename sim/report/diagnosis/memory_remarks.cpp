// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/memory_remarks.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/formatting/rank_list.h>

#include "schedule/units.h"

namespace rehearse::sim {
namespace {

constexpr std::size_t kPlacesShown = 3;

// For example ": 16MiB at model.cpp:12 in forward, 8MiB elsewhere"; empty if no place is known.
std::string taken_text(const RankMemory& use, const Places& places) {
  std::map<std::string, std::uint64_t> by_place;
  for (const auto& taken : use.taken) by_place[places.text(taken.where)] += taken.bytes;
  std::uint64_t elsewhere = by_place[""];
  by_place.erase("");
  if (by_place.empty()) return "";
  std::vector<std::pair<std::string, std::uint64_t>> largest(by_place.begin(), by_place.end());
  std::stable_sort(largest.begin(), largest.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> texts;
  for (const auto& [place, bytes] : largest) {
    if (texts.size() == kPlacesShown) {
      elsewhere += bytes;
    } else {
      texts.push_back(fmt::format("{} at {}", units::about_bytes(bytes), place));
    }
  }
  if (elsewhere > 0) texts.push_back(fmt::format("{} elsewhere", units::about_bytes(elsewhere)));
  return fmt::format(": {}", fmt::join(texts, ", "));
}

}  // namespace

std::vector<std::string> memory_remarks(const std::vector<RankMemory>& memory, std::uint64_t limit,
                                        const Places& places) {
  std::vector<std::pair<std::string, std::vector<int>>> said;  // in order of the first rank
  for (const auto& use : memory) {
    const auto of = limit > 0 ? fmt::format(" of {}", units::print_bytes(limit)) : "";
    auto text = fmt::format("peaked at {}{}{}", units::about_bytes(use.most), of, taken_text(use, places));
    const auto known = std::find_if(said.begin(), said.end(), [&](const auto& each) { return each.first == text; });
    if (known != said.end()) {
      known->second.push_back(use.rank);
    } else {
      said.emplace_back(std::move(text), std::vector<int>{use.rank});
    }
  }
  std::vector<std::string> remarks;
  for (const auto& [text, ranks] : said) remarks.push_back(fmt::format("memory: {} {}", describe_ranks(ranks), text));
  return remarks;
}

}  // namespace rehearse::sim
