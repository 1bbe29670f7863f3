// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/graph/metadata.h>

namespace rehearse::graph {

// The path of the innermost module around a node, such as "encoder.layer.0"; empty if it is unknown.
inline std::string module_path(const Origin& origin) {
  const std::string& modules = origin.nn_module_stack;
  const std::size_t entry = modules.rfind(';');
  const std::size_t start = modules.find(',', entry == std::string::npos ? 0 : entry);
  return start == std::string::npos ? "" : modules.substr(start + 1, modules.find(',', start + 1) - start - 1);
}

}  // namespace rehearse::graph
