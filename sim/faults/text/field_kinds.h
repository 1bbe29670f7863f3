// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fault_fields.h"

// Makes rows of the table of a fault's fields, by the kind of their value. `verbs`: the verbs with the field; empty:
// all.
namespace rehearse::sim::fields {

using Verbs = std::vector<Fault::Verb>;

template <class Number>
std::optional<Number> number_of(std::string_view text, Number least, Number most) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most)) return {};
  return value;
}

template <class Number>
FaultField number(std::string_view name, std::string takes, Verbs verbs, Number least, Number most,
                  Number Fault::* field) {
  return {name, std::move(takes), std::move(verbs),
          [=](Fault& fault, const std::string& typed) {
            const auto value = number_of<Number>(typed, least, most);
            if (value) fault.*field = *value;
            return value.has_value();
          },
          [=](const Fault& fault) { return fault.*field == Fault().*field ? "" : fmt::format("{}", fault.*field); }};
}

// One of several words; the first is the default.
template <class Value>
FaultField choice(std::string_view name, Verbs verbs, const std::vector<std::pair<std::string, Value>>& words,
                  Value Fault::* field) {
  std::vector<std::string> texts;
  for (const auto& [word, value] : words) texts.push_back(word);
  return {name, fmt::format("{}", fmt::join(texts, " or ")), std::move(verbs),
          [=](Fault& fault, const std::string& typed) {
            const auto found = std::ranges::find_if(words, [&](const auto& w) { return w.first == typed; });
            if (found == words.end()) return false;
            fault.*field = found->second;
            return true;
          },
          [=](const Fault& fault) {
            const auto found = std::ranges::find_if(words, [&](const auto& w) { return w.second == fault.*field; });
            return found == words.begin() ? "" : found->first;
          }};
}

// Values: "3", "0,2", "1-3", "all".
FaultField ranks(std::string_view name, std::string takes, Verbs verbs, std::vector<int> Fault::* field);

// Values: "allreduce#12", "get#2" for calls of the store, "write#3".
FaultField point(std::string_view name, std::string takes, Verbs verbs, std::optional<Fault::Point> Fault::* field);

FaultField text(std::string_view name, std::string takes, Verbs verbs, std::string Fault::* field);

}  // namespace rehearse::sim::fields
