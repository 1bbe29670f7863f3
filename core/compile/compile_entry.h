// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "compile/call.h"

namespace rehearse::compiler {

// Has the back end compile a graph that was captured as a whole. Throws what the back end throws, and CompileError if
// the compilation fixes a size that was marked dynamic.
Entry compile_entry(Call& call, Capture captured);

}  // namespace rehearse::compiler
