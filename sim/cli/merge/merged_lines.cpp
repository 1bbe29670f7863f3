// SPDX-License-Identifier: BSD-3-Clause
#include "cli/merge/merged_lines.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <rehearse_internal/formatting/rank_list.h>

#include "report/calls/event_lines.h"

namespace rehearse::cli {
namespace {

constexpr std::pair<std::string_view, double> kUnits[] = {{" ns", 1}, {" us", 1e3}, {" ms", 1e6}, {" s", 1e9}};

// The time at the beginning of a line, in nanoseconds. Lines without a time count as the oldest.
double time_in(std::string_view line) {
  double number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc()) return -1;
  const auto rest = line.substr(static_cast<std::size_t>(end - line.data()));
  for (const auto& [unit, size] : kUnits) {
    if (rest.starts_with(unit)) return number * size;
  }
  return -1;
}

struct Remark {
  std::set<int> ranks;  // the ranks at its beginning; empty: it names none
  std::string_view text;
};

Remark remark_in(std::string_view line) {
  constexpr std::string_view kRank = "rank ", kEnd = ": ";
  if (!line.starts_with(kRank)) return {{}, line};
  const auto number = line.substr(kRank.size());
  int rank = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rank);
  const auto rest = number.substr(static_cast<std::size_t>(end - number.data()));
  if (error != std::errc() || !rest.starts_with(kEnd)) return {{}, line};
  return {{rank}, rest.substr(kEnd.size())};
}

std::string text_of(const Remark& remark) {
  if (remark.ranks.empty()) return std::string(remark.text);
  return describe_ranks(std::vector<int>(remark.ranks.begin(), remark.ranks.end())) + ": " + std::string(remark.text);
}

}  // namespace

std::vector<std::string> merged_events(std::vector<std::string> all) {
  std::ranges::stable_sort(all, [](const auto& one, const auto& other) { return time_in(one) < time_in(other); });
  const auto left_out = all.size() - std::min(all.size(), sim::kEventLinesShown);
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(left_out));
  return all;
}

std::vector<std::string> merged_remarks(const std::vector<std::string>& all) {
  std::vector<Remark> remarks;
  for (const auto& line : all) {
    auto remark = remark_in(line);
    const auto known = std::ranges::find_if(remarks, [&](const Remark& other) {
      return other.text == remark.text && other.ranks.empty() == remark.ranks.empty();
    });
    if (known == remarks.end()) {
      remarks.push_back(std::move(remark));
    } else {
      known->ranks.merge(remark.ranks);
    }
  }
  std::vector<std::string> lines;
  for (const auto& remark : remarks) lines.push_back(text_of(remark));
  return lines;
}

}  // namespace rehearse::cli
