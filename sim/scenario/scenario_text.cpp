// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
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

std::string keys_text(const ScenarioSection& section, const Scenario& scenario) {
  if (section.name == kParametersSection) return parameters_text(scenario.parameters);
  if (section.is_printed && !section.is_printed(scenario)) return "";
  std::string text;
  for (const auto& key : section.keys) {
    const auto value = key.print(scenario);
    if (!value.empty()) text += fmt::format("{} = {}\n", key.name, value);
  }
  return text;
}

}  // namespace

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
