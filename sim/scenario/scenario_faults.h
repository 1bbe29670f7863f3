// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/sim/fault.h>

#include "scenario_reader.h"

namespace rehearse::sim {

// Reads the [[fault]] tables of a scenario (null: it has none). `do` is the verb; all other keys are those of a fault's
// text. Adds each problem, with its line, to `problems`.
std::vector<Fault> read_faults(Problems& problems, const toml::node* node);

// The tables, in the form that parse_scenario() reads back. Empty if there are no faults.
std::string to_toml(const std::vector<Fault>& faults);

}  // namespace rehearse::sim
