// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <vector>

#include <rehearse/job/parameters.h>

#include "scenario_reader.h"

namespace rehearse::sim {

// Reads the [parameters] of a scenario (null: it has none) for a program that takes `specs`. Adds each problem, with
// its line, to `problems`; a parameter with a problem keeps its default. Resolves texts that are relative paths (".",
// "..", "./x", "../x") against `base`.
Parameters read_parameters(Problems& problems, const toml::table* table, const std::filesystem::path& base,
                           const std::vector<ParameterSpec>& specs);

}  // namespace rehearse::sim
