// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse_internal/job/parameter_text.h>
#include <rehearse_internal/sim/scenario.h>

#include "scenario_faults.h"
#include "scenario_keys.h"

namespace rehearse::sim {
namespace {

std::string toml_text(std::string_view text) { return in_quotes(text, std::string_view::npos); }

std::string value_text(const ParameterValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? toml_text(*text) : rehearse::shown(value);
}

std::string parameters_text(const Parameters& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters.all()) {
    text += fmt::format("{} = {}\n", toml_text(name), value_text(value));
  }
  return text;
}

// A section that is off: all its keys have their defaults. Scenarios without it print as before it existed.
bool is_off(const ScenarioSection& section, const Scenario& scenario) {
  constexpr std::string_view kMayBeOff[] = {"compute", "compile", "checks", "swarm"};
  if (std::find(std::begin(kMayBeOff), std::end(kMayBeOff), section.name) == std::end(kMayBeOff)) return false;
  const auto has_default = [&, unset = Scenario()](const ScenarioOption& row) {
    return toml_value(row, scenario) == toml_value(row, unset);
  };
  return std::ranges::all_of(section.rows, has_default);
}

std::string keys_text(const ScenarioSection& section, const Scenario& scenario) {
  if (section.name == kParametersSection) return parameters_text(scenario.parameters);
  if (section.name == kFaultSection || is_off(section, scenario)) return "";
  std::string text;
  for (const auto& row : section.rows) {
    const auto value = toml_value(row, scenario);
    if (value.empty() || (row.unless_default && value == toml_value(row, Scenario()))) continue;
    text += fmt::format("{} = {}\n", row.key, value);
  }
  return text;
}

}  // namespace

std::string toml_value(const ScenarioOption& row, const Scenario& scenario) {
  auto texts = row.value.print(scenario, Spelling::file);
  if (texts.empty()) return "";
  const auto form = row.value.form;
  const bool is_text =
      form == Form::text || form == Form::texts || (form == Form::integer_or_text && texts.front().starts_with("0x"));
  if (is_text) std::transform(texts.begin(), texts.end(), texts.begin(), toml_text);
  return form == Form::texts ? fmt::format("[{}]", fmt::join(texts, ", ")) : texts.front();
}

std::string to_toml(const Scenario& scenario) {
  std::string text;
  for (const auto& section : scenario_sections()) {
    if (section.name == kFaultSection) text += to_toml(scenario.world.faults);
    const auto keys = keys_text(section, scenario);
    if (!section.name.empty() && !keys.empty()) text += fmt::format("\n[{}]\n", section.name);
    text += keys;
  }
  return text;
}

}  // namespace rehearse::sim
