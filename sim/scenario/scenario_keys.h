// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <rehearse_internal/sim/scenario.h>

#include "options/option.h"
#include "options/world_rows.h"

// All options of scenarios in one table: those of the world (sim/options/world_rows.h), those of the scenario itself
// and the report files. parse_scenario() reads by it, to_toml() prints by it, the command line takes its flags from it,
// and docs/GUIDE.md shows it.
namespace rehearse::sim {

using ScenarioOption = Option<Scenario>;

struct ScenarioSection {
  std::string_view name;  // empty: the file's top level
  Options<Scenario> rows;
};

// The section of the program's own keys: see read_parameters().
inline constexpr std::string_view kParametersSection = "parameters";

// In the order in which to_toml() prints them. Includes [parameters] and [[fault]], whose row has no key.
const std::vector<ScenarioSection>& scenario_sections();

// Null: no option of a scenario has this flag.
const ScenarioOption* find_scenario_flag(std::string_view flag);

// The value as TOML; empty: it is unset.
std::string toml_value(const ScenarioOption& row, const Scenario& scenario);

// The table in docs/GUIDE.md, in Markdown, one line for each row.
std::string scenario_keys_as_markdown();

}  // namespace rehearse::sim
