// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>

#include <rehearse/job/program.h>

namespace rehearse {

// All programs known so far. Pointers to the elements stay valid.
std::deque<Program>& registered_programs();

// Adds the programs of all RegisteredModules, once. Throws ModuleError.
void load_registered_modules();

}  // namespace rehearse
