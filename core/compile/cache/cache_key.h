// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/compile/backend.h>

namespace rehearse::compiler {

// Everything that determines the output of the back end for a graph, as text. A key contains the back end, the graph
// with its metadata, the memory layout and the sharing of the graph's inputs, the contents of small constants, the
// symbols with their values and guards, and the modes of the calling fiber. `of_backend`: Backend::cache_key(). Throws
// std::runtime_error with the reason if the graph cannot have a key.
std::string cache_key(const BackendInput& input, const std::string& backend, const std::string& of_backend);

// Identifies the code that compiles, by the build ids of Rehearse and LibTorch and by the processor instructions that
// LibTorch's kernels use here. Includes all other loaded libraries, because they may define operators and derivatives.
// Empty if Rehearse or LibTorch was linked without a build id.
std::string program_id();

}  // namespace rehearse::compiler
