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
using SequenceKey = std::tuple<int, std::string, bool>;  // rank, group, point to point

std::map<SequenceKey, Calls> by_sequence(const std::vector<sim::ListedCall>& calls) {
  std::map<SequenceKey, Calls> sequences;
  for (const auto& call : calls) sequences[{call.rank, call.group, call.point_to_point}].push_back(&call);
  return sequences;
}

std::string text_of(const Calls& calls, std::size_t at, bool with_tensors) {
  if (at >= calls.size()) return "no call";
  const auto& call = *calls[at];
  if (!with_tensors) return fmt::format("{} as #{}", call.call, call.sequence);
  return fmt::format("{} as #{} of {}", call.call, call.sequence, fmt::join(call.tensors, ", "));
}

void compare_sequence(const SequenceKey& key, const Calls& first, const Calls& second, const std::string& first_name,
                      const std::string& second_name, bool to_the_end, CallComparison& result) {
  const auto common = std::min(first.size(), second.size());
  std::size_t at = 0;
  while (at < common && *first[at] == *second[at]) ++at;
  result.alike += at;
  const bool same = at == common && (first.size() == second.size() || !to_the_end);
  if (same) return;
  const bool with_tensors = at < common && text_of(first, at, false) == text_of(second, at, false);
  result.differences.push_back(fmt::format("rank {}, call {} in group \"{}\": {} {}, {} {}", std::get<0>(key), at + 1,
                                           std::get<1>(key), first_name, text_of(first, at, with_tensors), second_name,
                                           text_of(second, at, with_tensors)));
}

}  // namespace

CallComparison compare_calls(const ModeRun& one, const ModeRun& other, bool to_the_end) {
  const auto first = by_sequence(one.calls);
  auto second = by_sequence(other.calls);
  CallComparison result;
  for (const auto& [key, calls] : first) {
    compare_sequence(key, calls, second[key], one.name, other.name, to_the_end, result);
    second.erase(key);
  }
  for (const auto& [key, calls] : second) compare_sequence(key, {}, calls, one.name, other.name, to_the_end, result);
  return result;
}

}  // namespace rehearse::cli
