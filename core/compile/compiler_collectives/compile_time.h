// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace rehearse::compiler {

// Advances the calling rank's virtual time by the time that the world's CompileTimeModel gives for compiling `nodes`
// nodes. Does nothing outside of worlds or if the model is off.
void pass_compile_time(std::size_t nodes);

// Notes that graphs with `nodes` nodes came from the cache. Ranks that had to compile them arrive later. So, as in
// PyTorch, extends the timeout of this rank's next operation on the group of all ranks, here by the longest time that
// the world's CompileTimeModel can give for compiling `nodes` nodes.
void note_saved_compile_time(std::size_t nodes);

}  // namespace rehearse::compiler
