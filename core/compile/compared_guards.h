// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <rehearse/compile/compile_options.h>

#include "compile/captures/capture_call.h"

namespace rehearse::compiler {

// A hash of the guards of a captured call, as far as they mean the same on all ranks: arguments, conditions on sizes,
// modes, and watched numbers and texts. If the ranks of a group compile together, the hash tells groups apart. Else it
// has the type of the function and the sizes of the parameters, because ranks may be stages of a pipeline.
std::uint64_t compared_guards(const CallView& call, const Capture& capture, const CompileOptions& options);

}  // namespace rehearse::compiler
