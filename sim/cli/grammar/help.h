// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "cli/grammar/grammar.h"

namespace rehearse::cli {

// Texts for people, made from the grammar. `name` is what the user calls the command: argv[0] without its folder.
// usage() returns "usage: job run SCENARIO [options]"; for a null `command`, the usage of the whole program.

// "usage: job run SCENARIO [options]"; without a command, that of the whole.
std::string usage(const std::string& name, const CommandSpec* command);

// The text of --help.
std::string help(const std::string& name, const CommandSpec* command);

}  // namespace rehearse::cli
