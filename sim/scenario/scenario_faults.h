// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/sim/fault.h>

#include "scenario_reader.h"

namespace rehearse::sim {

// The [[fault]] tables of a scenario (null: it has none). `do` is the verb, every other key as in the text of a fault.
// What is wrong with one is noted, with its line.
std::vector<Fault> read_faults(Problems& problems, const toml::node* node);

// The tables as parse_scenario() reads them back; nothing for no faults.
std::string to_toml(const std::vector<Fault>& faults);

}  // namespace rehearse::sim
