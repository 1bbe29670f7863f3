// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "compile/call.h"

namespace rehearse::compiler {

// Has the back end compile a graph that was captured as a whole. Throws what the back end throws.
Entry compile_entry(Call& call, Capture captured);

}  // namespace rehearse::compiler
