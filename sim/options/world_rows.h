// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include <rehearse/sim/world_options.h>

#include "options/option.h"

namespace rehearse::sim {

// The section of the row for faults: an array of tables, whose keys are those of a fault's text.
inline constexpr std::string_view kFaultSection = "fault";

// The options of a world, in the order in which scenarios print them. sim/cli/command_table.cpp says which command has
// which flags.
const Options<WorldOptions>& world_rows();

}  // namespace rehearse::sim
