// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/compile/leaf.h>

#include "compile/guards/symbol_guards.h"

namespace rehearse::compiler {

// Throws CompileError if the user marked a size as dynamic, but the guards leave only one value for the size.
// `positions`: one for each source of the environment.
void refuse_fixed_marks(const LeafList& leaves, const std::vector<SymbolPosition>& positions,
                        const shapes::ShapeEnv& shapes);

}  // namespace rehearse::compiler
