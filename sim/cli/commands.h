// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

}  // namespace rehearse::cli
