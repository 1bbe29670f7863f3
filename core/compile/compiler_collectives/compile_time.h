// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace rehearse::compiler {

// The calling rank's virtual time moves on by what compiling `nodes` nodes of a graph takes by the world's
// CompileTimeModel. Nothing outside of worlds, and where the model is off.
void pass_compile_time(std::size_t nodes);

// The same time has been saved, for graphs with so many nodes came from the cache. Ranks that had to compile them come
// later, and so the limit of this rank's next operation on the group of all ranks is longer by as much, as in PyTorch.
void note_saved_compile_time(std::size_t nodes);

}  // namespace rehearse::compiler
