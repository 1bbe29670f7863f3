// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/compile/leaf.h>

#include "compile/guards/symbol_guards.h"

namespace rehearse::compiler {

// Throws CompileError for a size that the user has marked as dynamic, and for which the graph takes one value alone.
// `places`: of the environment's sources.
void refuse_fixed_marks(const LeafList& leaves, const std::vector<SymbolPlace>& places, const shapes::ShapeEnv& shapes);

}  // namespace rehearse::compiler
