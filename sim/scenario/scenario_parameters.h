// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <vector>

#include <rehearse/job/parameters.h>

#include "scenario_reader.h"

namespace rehearse::sim {

// The [parameters] of a scenario (null: it has none) for a program that takes `specs`; what is wrong with
// them is noted, each with its line, and keeps its fallback. Texts that name places are relative to `base`.
Parameters read_parameters(Problems& problems, const toml::table* table, const std::filesystem::path& base,
                           const std::vector<ParameterSpec>& specs);

}  // namespace rehearse::sim
