// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "cli/grammar/grammar.h"

namespace rehearse::cli {

// Texts for people, made from the grammar. `name` is what the user calls the command: argv[0] without its folder.

// For example "usage: job run SCENARIO [options]". If `command` is null: the usage of the whole program.
std::string usage(const std::string& name, const CommandSpec* command);

// The text of --help.
std::string help(const std::string& name, const CommandSpec* command);

}  // namespace rehearse::cli
