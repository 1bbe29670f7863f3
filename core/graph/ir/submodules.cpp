// SPDX-License-Identifier: BSD-3-Clause
#include "graph/ir/submodules.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace rehearse::graph {
namespace {

// A module found during the walk.
struct Met {
  const GraphModule* module;
  std::size_t from;         // index of its parent
  const std::string* name;  // its name in the parent
};

std::string way(const std::vector<Met>& met, std::size_t at) {
  std::string name;
  for (; met[at].name != nullptr; at = met[at].from) name = *met[at].name + (name.empty() ? "" : ".") + name;
  return name;
}

// Computes the number of levels of submodules below a module. Walks each module once.
class Heights {
 public:
  int of(const GraphModule& module, int depth) {
    if (depth > kMaxNesting) {
      throw GraphError("", "submodule", "submodules stand in one another deeper than " + std::to_string(kMaxNesting));
    }
    const auto known = heights_.find(&module);
    if (known != heights_.end() && depth + known->second <= kMaxNesting) return known->second;
    int height = 0;
    for (const auto& [name, submodule] : module.submodules()) height = std::max(height, 1 + of(*submodule, depth + 1));
    return heights_[&module] = height;
  }

 private:
  std::unordered_map<const GraphModule*, int> heights_;
};

}  // namespace

std::optional<std::string> way_to(const GraphModule& module, const GraphModule& wanted) {
  std::vector<Met> met = {{&module, 0, nullptr}};
  std::unordered_set<const GraphModule*> known = {&module};
  for (std::size_t at = 0; at < met.size(); ++at) {
    if (met[at].module == &wanted) return way(met, at);
    for (const auto& [name, submodule] : met[at].module->submodules()) {
      if (known.insert(submodule.get()).second) met.push_back({submodule.get(), at, &name});
    }
  }
  return std::nullopt;
}

std::string free_name(const GraphModule& module, const std::string& wanted, const GraphModule* same) {
  std::string name = wanted;
  for (int number = 1;; ++number) {
    const auto other = module.find_submodule(name);
    if (other == nullptr ? module.find_attribute(name) == nullptr : other.get() == same) return name;
    name = wanted + "_" + std::to_string(number);
  }
}

void check_nesting(const GraphModule& module) { Heights().of(module, 0); }

}  // namespace rehearse::graph
