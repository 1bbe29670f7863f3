// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace rehearse::compiler {

// Which code compiles: that of Rehearse and of LibTorch, by their build ids, the instructions of the processor that
// LibTorch's kernels use here, and all else that is loaded now, for operators and their derivatives may be of a library
// of the user's. Empty if Rehearse or LibTorch was linked without a build id.
std::string program_id();

}  // namespace rehearse::compiler
