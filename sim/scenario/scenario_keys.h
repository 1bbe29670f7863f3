// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse_internal/sim/scenario.h>

#include "scenario_reader.h"

// All keys of scenario files in one table: parse_scenario() reads by it, to_toml() prints by it, and docs/GUIDE.md
// shows it. To add a key, add the field that it fills and a row in scenario_keys.cpp.
namespace rehearse::sim {

struct ScenarioKey {
  std::string_view name;
  std::string takes;  // for the guide, in Markdown
  std::function<void(Section& section, Scenario& scenario)> read;
  std::function<std::string(const Scenario& scenario)> print;  // the value as TOML; empty: the key is left out
  // The default, for the guide, if it differs from what to_toml() would print.
  std::string_view fallback = {};
};

struct ScenarioSection {
  std::string_view name;  // empty: the file's top level
  std::vector<ScenarioKey> keys;
  // Tells whether to_toml() prints the section; empty: always. False for a section that is off, so that scenarios
  // without the section print as before the section existed.
  std::function<bool(const Scenario& scenario)> is_printed = {};
};

// The program's own keys are not in the table: see read_parameters().
inline constexpr std::string_view kParametersSection = "parameters";

// An array of tables, whose keys are those of a fault's text: see read_faults().
inline constexpr std::string_view kFaultSection = "fault";

// In the order in which to_toml() prints them. Includes [parameters] and [[fault]], without keys.
const std::vector<ScenarioSection>& scenario_sections();

// The table in docs/GUIDE.md, in Markdown, one line for each key.
std::string scenario_keys_as_markdown();

}  // namespace rehearse::sim
