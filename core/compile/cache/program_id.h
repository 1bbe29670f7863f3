// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace rehearse::compiler {

// Identifies the code that compiles, by the build ids of Rehearse and LibTorch and by the processor instructions that
// LibTorch's kernels use here. Includes all other loaded libraries, because they may define operators and derivatives.
// Empty if Rehearse or LibTorch was linked without a build id.
std::string program_id();

}  // namespace rehearse::compiler
