// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse_internal/sim/scenario.h>

#include "scenario_reader.h"

// What a scenario file may say, as one table: parse_scenario() reads by it, to_toml() prints by it, and docs/GUIDE.md
// shows it. A new key is the field that it fills and a row in scenario_keys.cpp.
namespace rehearse::sim {

struct ScenarioKey {
  std::string_view name;
  std::string takes;  // for the guide, in Markdown
  std::function<void(Section& section, Scenario& scenario)> read;
  std::function<std::string(const Scenario& scenario)> print;  // the value as TOML; gives nothing: the key is left out
  // What holds without the key, for the guide: where to_toml() would print something else, or nothing.
  std::string_view fallback = {};
};

struct ScenarioSection {
  std::string_view name;  // empty: the file's top level
  std::vector<ScenarioKey> keys;
  // Whether to_toml() prints the section; empty: always. What is off is left out, so that what is written about runs
  // without it stays as it was.
  std::function<bool(const Scenario& scenario)> is_printed = {};
};

// The program's own keys are not here: see read_parameters().
inline constexpr std::string_view kParametersSection = "parameters";

// An array of tables, whose keys are those of a fault's text: see read_faults().
inline constexpr std::string_view kFaultSection = "fault";

// In the order in which files are printed, [parameters] among them, without keys.
const std::vector<ScenarioSection>& scenario_sections();

// The table of docs/GUIDE.md, in Markdown, a line for each key.
std::string scenario_keys_as_markdown();

}  // namespace rehearse::sim
