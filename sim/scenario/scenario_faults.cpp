// SPDX-License-Identifier: BSD-3-Clause
#include "scenario_faults.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/job/parameter_text.h>

#include "faults/text/fault_fields.h"

namespace rehearse::sim {
namespace {

// A value as it stands in a fault's text. Nothing for tables, dates, and arrays that hold anything but integers.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return text;
  if (const auto* const ranks = node.as_array()) {
    std::string text;
    for (const auto& rank : *ranks) {
      const auto number = rank.value_exact<std::int64_t>();
      if (!number) return std::nullopt;
      text += fmt::format("{}{}", text.empty() ? "" : ",", *number);
    }
    return text;
  }
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (const auto integer = node.value_exact<std::int64_t>()) return fmt::format("{}", *integer);
  if (const auto number = node.value_exact<double>()) return fmt::format("{}", *number);
  return std::nullopt;
}

std::optional<Fault> fault_of(Problems& problems, const toml::table& table) {
  std::string verb;
  std::vector<std::pair<std::string, std::string>> fields;
  for (const auto& [key, value] : table) {
    const auto text = text_of(value);
    if (!text) {
      problems.add(line_of(value), fmt::format("[[fault]] {} is {}; it takes a text, a number or integers in an array",
                                               key.str(), shown(value)));
      return std::nullopt;
    }
    if (key.str() == "do") {
      verb = *text;
    } else {
      fields.emplace_back(std::string(key.str()), *text);
    }
  }
  try {
    if (verb.empty()) throw FaultError("there is no key \"do\": it says what happens, as in do = \"crash\"");
    auto fault = make_fault(verb, fields);
    require_whole(fault);
    return fault;
  } catch (const FaultError& error) {
    problems.add(line_of(table), fmt::format("[[fault]] {}", error.what()));
    return std::nullopt;
  }
}

}  // namespace

std::vector<Fault> read_faults(Problems& problems, const toml::node* node) {
  std::vector<Fault> faults;
  if (node == nullptr) return faults;
  const auto* const tables = node->as_array();
  const bool fits = tables != nullptr &&
                    std::all_of(tables->begin(), tables->end(), [](const toml::node& each) { return each.is_table(); });
  if (!fits) {
    problems.add(line_of(*node), fmt::format("fault is {}; it takes tables, each under [[fault]]", shown(*node)));
    return faults;
  }
  for (const auto& each : *tables) {
    if (auto fault = fault_of(problems, *each.as_table())) faults.push_back(std::move(*fault));
  }
  return faults;
}

std::string to_toml(const std::vector<Fault>& faults) {
  std::string text;
  for (const auto& fault : faults) {
    text += fmt::format("\n[[fault]]\ndo = \"{}\"\n", to_string(fault.verb));
    for (const auto& field : fault_fields()) {
      const auto value = has(field, fault.verb) ? field.print(fault) : "";
      if (!value.empty()) text += fmt::format("{} = {}\n", field.name, in_quotes(value, std::string_view::npos));
    }
  }
  return text;
}

}  // namespace rehearse::sim
