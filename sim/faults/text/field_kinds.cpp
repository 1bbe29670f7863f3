// SPDX-License-Identifier: BSD-3-Clause
#include "field_kinds.h"

#include <cstdint>
#include <limits>
#include <set>

#include <rehearse_internal/comm/op_table.h>
#include <rehearse_internal/job/spelling.h>

#include "faults/store/store_calls.h"

namespace rehearse::sim::fields {
namespace {

bool is_operation(std::string_view name) {
  return std::ranges::any_of(comm::op_table::kRows, [&](const comm::OpRow& row) { return row.name == name; });
}

bool read_ranks(std::vector<int>& all, const std::string& text) {
  constexpr int kMost = 65'535;
  all.clear();
  if (text == "all") return true;
  std::set<int> ranks;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    const auto part = text.substr(begin, end - begin);
    const auto dash = part.find('-');
    const auto first = number_of(std::string_view(part).substr(0, dash), 0, kMost);
    const auto last = dash == std::string::npos ? first : number_of(std::string_view(part).substr(dash + 1), 0, kMost);
    if (!first || !last || *first > *last) return false;
    for (int rank = *first; rank <= *last; ++rank) ranks.insert(rank);
    begin = end + 1;
  }
  all.assign(ranks.begin(), ranks.end());
  return true;
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (last > i) text += fmt::format("-{}", ranks[last]);
    i = last + 1;
  }
  return text;
}

// The kinds of calls that the faults of a verb may name.
struct Calls {
  bool of_groups, of_store, of_disk;
};

Calls calls_of(Fault::Verb verb) {
  const auto& traits = traits_of(verb);
  return {!traits.of_store && !traits.of_disk, traits.of_store || traits.any_call, traits.of_disk || traits.any_call};
}

std::optional<Fault::Point> point_of(std::string_view text, const Calls& calls) {
  const auto sign = text.find('#');
  Fault::Point point{std::string(text.substr(0, sign)), 0};
  const bool known = (calls.of_groups && is_operation(point.op)) || (calls.of_store && is_store_call(point.op)) ||
                     (calls.of_disk && point.op == kWrite);
  if (!point.op.empty() && !known) return std::nullopt;
  if (sign == std::string_view::npos) return point.op.empty() ? std::nullopt : std::optional(point);
  const auto number = number_of<std::uint64_t>(text.substr(sign + 1), 1, std::numeric_limits<std::uint32_t>::max());
  if (!number) return std::nullopt;
  point.number = *number;
  return point;
}

// Corrects a misspelt call: "allreduce#12" for "allredcue#12".
std::string nearest_point(std::string_view text, const Calls& calls) {
  std::vector<std::string> names;
  for (const auto& row : comm::op_table::kRows) {
    if (calls.of_groups) names.emplace_back(row.name);
  }
  for (const auto& row : kStoreCalls) {
    if (calls.of_store) names.emplace_back(row.name);
  }
  if (calls.of_disk) names.emplace_back(kWrite);
  const auto sign = std::min(text.find('#'), text.size());
  const auto nearest = nearest_spelling(text.substr(0, sign), names);
  if (nearest.empty()) return "";
  auto meant = nearest + std::string(text.substr(sign));
  return point_of(meant, calls) ? meant : "";
}

std::string point_text(const std::optional<Fault::Point>& point) {
  if (!point) return "";
  return point->number == 0 ? point->op : fmt::format("{}#{}", point->op, point->number);
}

}  // namespace

FaultField ranks(std::string_view name, std::string takes, Verbs verbs, std::vector<int> Fault::* field) {
  return {name, std::move(takes), std::move(verbs),
          [=](Fault& fault, const std::string& typed) { return read_ranks(fault.*field, typed); },
          [=](const Fault& fault) { return ranks_text(fault.*field); }};
}

FaultField point(std::string_view name, std::string takes, Verbs verbs, std::optional<Fault::Point> Fault::* field) {
  return {name,
          std::move(takes),
          std::move(verbs),
          [=](Fault& fault, const std::string& typed) {
            return (fault.*field = point_of(typed, calls_of(fault.verb))).has_value();
          },
          [=](const Fault& fault) { return point_text(fault.*field); },
          [](const Fault& fault, const std::string& typed) { return nearest_point(typed, calls_of(fault.verb)); }};
}

FaultField text(std::string_view name, std::string takes, Verbs verbs, std::string Fault::* field) {
  return {name, std::move(takes), std::move(verbs),
          [=](Fault& fault, const std::string& typed) {
            fault.*field = typed;
            return !typed.empty() && typed.find('"') == std::string::npos;
          },
          [=](const Fault& fault) { return fault.*field; }};
}

}  // namespace rehearse::sim::fields
