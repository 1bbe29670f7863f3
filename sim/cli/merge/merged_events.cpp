// SPDX-License-Identifier: BSD-3-Clause
#include "cli/merge/merged_events.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <utility>

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

}  // namespace

std::vector<std::string> merged_events(std::vector<std::string> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& one, const auto& other) { return time_in(one) < time_in(other); });
  const auto left_out = all.size() - std::min(all.size(), sim::kEventLinesShown);
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(left_out));
  return all;
}

}  // namespace rehearse::cli
