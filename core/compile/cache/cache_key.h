// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/compile/backend.h>

namespace rehearse::compiler {

// All that decides what the back end makes of the graph, as text: two inputs with the same key give the same. It holds
// the back end, the graph with what is known of each node, how its inputs lie in memory and which of them share it,
// small constants with their contents, the symbols with their values and guards, and the modes of the calling fiber.
// `of_backend`: Backend::cache_key(). Throws std::runtime_error with the reason where a graph cannot have a key.
std::string cache_key(const BackendInput& input, const std::string& backend, const std::string& of_backend);

}  // namespace rehearse::compiler
