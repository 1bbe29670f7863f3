// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// `wanted`, with a number when something in the module has this name, unless it is `same`.
inline std::string free_name(const GraphModule& module, const std::string& wanted, const GraphModule* same = nullptr) {
  std::string name = wanted;
  for (int number = 1;; ++number) {
    const auto other = module.find_submodule(name);
    if (other == nullptr ? module.find_attribute(name) == nullptr : other.get() == same) return name;
    name = wanted + "_" + std::to_string(number);
  }
}

}  // namespace rehearse::graph
