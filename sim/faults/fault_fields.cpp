// SPDX-License-Identifier: BSD-3-Clause
#include "fault_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/comm/op_table.h>

#include "schedule/units.h"

namespace rehearse::sim {
namespace {

using Verb = Fault::Verb;

template <class Number>
std::optional<Number> number_of(std::string_view text, Number least, Number most) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most)) return {};
  return value;
}

bool is_operation(std::string_view name) {
  return std::any_of(comm::op_table::kRows.begin(), comm::op_table::kRows.end(),
                     [&](const comm::OpRow& row) { return row.name == name; });
}

// "3", "0,2", "1-3", "all"
bool read_ranks(Fault& fault, const std::string& text) {
  constexpr int kMost = 65'535;
  fault.ranks.clear();
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
  fault.ranks.assign(ranks.begin(), ranks.end());
  return true;
}

std::string ranks_text(const Fault& fault) {
  std::string text;
  for (std::size_t i = 0; i < fault.ranks.size();) {
    std::size_t last = i;
    while (last + 1 < fault.ranks.size() && fault.ranks[last + 1] == fault.ranks[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", fault.ranks[i]);
    if (last > i) text += fmt::format("-{}", fault.ranks[last]);
    i = last + 1;
  }
  return text;
}

std::optional<Fault::Point> point_of(std::string_view text) {
  const auto sign = text.find('#');
  Fault::Point point{std::string(text.substr(0, sign)), 0};
  if (!point.op.empty() && !is_operation(point.op)) return std::nullopt;
  if (sign == std::string_view::npos) return point.op.empty() ? std::nullopt : std::optional(point);
  const auto number = number_of<std::uint64_t>(text.substr(sign + 1), 1, std::numeric_limits<std::uint32_t>::max());
  if (!number) return std::nullopt;
  point.number = *number;
  return point;
}

std::string point_text(const std::optional<Fault::Point>& point) {
  if (!point) return "";
  return point->number == 0 ? point->op : fmt::format("{}#{}", point->op, point->number);
}

FaultField point(std::string_view name, std::string takes, std::optional<Fault::Point> Fault::* field) {
  return {name,
          std::move(takes),
          {},
          [=](Fault& fault, const std::string& text) { return (fault.*field = point_of(text)).has_value(); },
          [=](const Fault& fault) { return point_text(fault.*field); }};
}

FaultField text(std::string_view name, std::string takes, std::string Fault::* field) {
  return {name,
          std::move(takes),
          {},
          [=](Fault& fault, const std::string& typed) {
            fault.*field = typed;
            return !typed.empty() && typed.find('"') == std::string::npos;
          },
          [=](const Fault& fault) { return fault.*field; }};
}

// One of some words, the first of which holds without it.
template <class Value>
FaultField choice(std::string_view name, std::vector<Verb> verbs, std::vector<std::pair<std::string, Value>> words,
                  Value Fault::* field) {
  std::vector<std::string> texts;
  for (const auto& [word, value] : words) texts.push_back(word);
  return {name, fmt::format("{}", fmt::join(texts, " or ")), std::move(verbs),
          [=](Fault& fault, const std::string& typed) {
            const auto found =
                std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.first == typed; });
            if (found == words.end()) return false;
            fault.*field = found->second;
            return true;
          },
          [=](const Fault& fault) {
            const auto found =
                std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.second == fault.*field; });
            return found == words.begin() ? "" : found->first;
          }};
}

template <class Number>
FaultField number(std::string_view name, std::string takes, std::vector<Verb> verbs, Number least, Number most,
                  Number Fault::* field) {
  return {name, std::move(takes), std::move(verbs),
          [=](Fault& fault, const std::string& typed) {
            const auto value = number_of<Number>(typed, least, most);
            if (value) fault.*field = *value;
            return value.has_value();
          },
          [=](const Fault& fault) { return fault.*field == Fault().*field ? "" : fmt::format("{}", fault.*field); }};
}

std::vector<FaultField> when_fields() {
  return {
      {"rank", "ranks, as in 3, 0,2 or 1-3, or all", {}, read_ranks, ranks_text},
      point("at", "a call by its number in its group, as in allreduce#12, allreduce or #12", &Fault::at),
      point("call", "a call by its number among the rank's calls of that kind, as in allreduce#3", &Fault::call),
      text("group", "the name of a group", &Fault::group),
      text("label", "the label of a call", &Fault::label),
      {"after",
       "a virtual time in ns, us, ms, s, min or h, as in 2ms",
       {},
       [](Fault& fault, const std::string& typed) { return (fault.after = units::parse_duration(typed)).has_value(); },
       [](const Fault& fault) { return fault.after ? units::print_duration(*fault.after) : ""; }},
      number<double>("p", "a probability above 0, at most 1", {}, 1e-6, 1, &Fault::p),
  };
}

std::vector<FaultField> what_fields() {
  constexpr std::uint64_t kTimesMost = 1'000'000'000;
  return {
      {"for",
       "a duration in ns, us, ms, s, min or h, as in 5ms",
       {Verb::pause, Verb::delay},
       [](Fault& fault, const std::string& typed) {
         const auto amount = units::parse_duration(typed);
         if (amount) fault.amount = *amount;
         return amount && amount->count() > 0;
       },
       [](const Fault& fault) { return fault.amount.count() > 0 ? units::print_duration(fault.amount) : ""; }},
      number<double>("factor", "a number from 1 to 1000000", {Verb::slow}, 1, 1e6, &Fault::factor),
      number<int>("status", "an integer from 0 to 255", {Verb::exit}, 0, 255, &Fault::status),
      choice<Fault::Corruption>("with", {Verb::corrupt},
                                {{"nan", Fault::Corruption::nan}, {"bit", Fault::Corruption::bit}}, &Fault::with),
      choice<Fault::Peers>("peers", {Verb::crash},
                           {{"timeout", Fault::Peers::timeout}, {"disconnect", Fault::Peers::disconnect}},
                           &Fault::peers),
      number<std::uint64_t>("times", "an integer from 1 to 1000000000: on each rank", {}, 1, kTimesMost, &Fault::times),
      choice<bool>("optional", {}, {{"false", false}, {"true", true}}, &Fault::optional),
  };
}

}  // namespace

const std::vector<FaultVerb>& fault_verbs() {
  static const std::vector<FaultVerb> verbs = {
      {Verb::crash, "crash", "the rank never runs again: no destructor, no `catch`"},
      {Verb::exit, "exit", "the rank calls `exit(status)`"},
      {Verb::hang, "hang", "the rank never comes back from the call"},
      {Verb::pause, "pause", "the rank stands still before the call, `for` a duration"},
      {Verb::slow, "slow", "from the start, what the rank computes and communicates takes `factor` times as long"},
      {Verb::delay, "delay", "the data of the call moves later, by `for`"},
      {Verb::skip_collective, "skip_collective", "the rank leaves the call out, and does not know"},
      {Verb::fail_op, "fail_op", "the call throws `CommError`"},
      {Verb::corrupt, "corrupt", "the call's first output is wrong on the rank, `with` a NaN or a flipped bit"},
  };
  return verbs;
}

std::string_view to_string(Fault::Verb verb) { return fault_verbs()[static_cast<std::size_t>(verb)].name; }

const std::vector<FaultField>& fault_fields() {
  static const std::vector<FaultField> fields = [] {
    auto all = when_fields();
    for (auto& field : what_fields()) all.push_back(std::move(field));
    return all;
  }();
  return fields;
}

}  // namespace rehearse::sim
