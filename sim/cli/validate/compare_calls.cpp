// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/validate/comparison.h"

namespace rehearse::cli {
namespace {

using Calls = std::vector<const sim::ListedCall*>;
using Place = std::tuple<int, std::string, bool>;  // rank, group, point to point

std::map<Place, Calls> by_place(const std::vector<sim::ListedCall>& calls) {
  std::map<Place, Calls> places;
  for (const auto& call : calls) places[{call.rank, call.group, call.point_to_point}].push_back(&call);
  return places;
}

std::string text_of(const Calls& calls, std::size_t at, bool with_tensors) {
  if (at >= calls.size()) return "no call";
  const auto& call = *calls[at];
  if (!with_tensors) return fmt::format("{} as #{}", call.call, call.sequence);
  return fmt::format("{} as #{} of {}", call.call, call.sequence, fmt::join(call.tensors, ", "));
}

void compare_place(const Place& place, const Calls& first, const Calls& second, const std::string& first_name,
                   const std::string& second_name, bool to_the_end, CallComparison& result) {
  const auto common = std::min(first.size(), second.size());
  std::size_t at = 0;
  while (at < common && *first[at] == *second[at]) ++at;
  result.alike += at;
  const bool same = at == common && (first.size() == second.size() || !to_the_end);
  if (same) return;
  const bool with_tensors = at < common && text_of(first, at, false) == text_of(second, at, false);
  result.differences.push_back(fmt::format("rank {}, call {} in group \"{}\": {} {}, {} {}", std::get<0>(place), at + 1,
                                           std::get<1>(place), first_name, text_of(first, at, with_tensors),
                                           second_name, text_of(second, at, with_tensors)));
}

}  // namespace

CallComparison compare_calls(const ModeRun& one, const ModeRun& other, bool to_the_end) {
  const auto first = by_place(one.calls);
  auto second = by_place(other.calls);
  CallComparison result;
  for (const auto& [place, calls] : first) {
    compare_place(place, calls, second[place], one.name, other.name, to_the_end, result);
    second.erase(place);
  }
  for (const auto& [place, calls] : second) compare_place(place, {}, calls, one.name, other.name, to_the_end, result);
  return result;
}

}  // namespace rehearse::cli
