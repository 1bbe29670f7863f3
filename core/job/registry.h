// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>

#include <rehearse/job/program.h>

namespace rehearse {

// All programs that are known so far. Pointers into it stay valid.
std::deque<Program>& registered_programs();

// Those of the RegisteredModules join them, once. Throws ModuleError.
void load_registered_modules();

}  // namespace rehearse
