// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <rehearse_internal/sim/scenario.h>

#include "cli/grammar/arguments.h"
#include "cli/terminal/console.h"

// One function for each command, as CommandFunction specifies; known_commands() lists them. A command that has its own
// library, such as split, registers its function in that library.
namespace rehearse::cli {

int run(const Arguments& arguments, Console& console);
// Does `run` for a scenario whose mode is real. Also throws RunnerUnavailable.
int run_for_real(const Arguments& arguments, sim::Scenario scenario, Console& console);
int merge(const Arguments& arguments, Console& console);
int validate(const Arguments& arguments, Console& console);
int sweep(const Arguments& arguments, Console& console);
int replay(const Arguments& arguments, Console& console);
int explain(const Arguments& arguments, Console& console);
int html(const Arguments& arguments, Console& console);
int completion(const Arguments& arguments, Console& console);
int list(const Arguments& arguments, Console& console);

// The scripts of `completion` call the command with this word and those up to the one that the user is typing.
inline constexpr std::string_view kCompleteWord = "__complete";

// What may stand in place of the last word, one offer on a line: a word and, behind a tab, its description. "@folders",
// "@files" and "@files toml|rlog" stand for the names that the shell finds, the last one with these endings. For
// --name=value, the offers are values. `words`: behind the executable; bash makes three words of --name=value.
std::string offers(std::vector<std::string> words);

}  // namespace rehearse::cli
