// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/graph_module.h>

#include "graph/ir/node_map.h"
#include "graph/ir/submodules.h"

namespace rehearse::graph {

// Destroys submodules one after the other, because a long chain of modules must not become an equally deep recursion.
GraphModule::~GraphModule() {
  std::vector<std::shared_ptr<GraphModule>> last_owned;
  const auto take = [&](auto& submodules) {
    for (auto& [name, module] : submodules) {
      if (module.use_count() == 1) last_owned.push_back(std::move(module));
    }
  };
  take(submodules_);
  while (!last_owned.empty()) {
    const std::shared_ptr<GraphModule> module = std::move(last_owned.back());
    last_owned.pop_back();
    take(module->submodules_);
  }
}

void GraphModule::set_attribute(const std::string& name, Attribute attribute) {
  if (name.empty()) throw GraphError("", "attribute", "the name is empty");
  if (submodule_index_.contains(name)) throw GraphError("", "attribute " + name, "a submodule has this name");
  const auto [at, is_new] = attribute_index_.emplace(name, attributes_.size());
  if (is_new) {
    attributes_.emplace_back(name, std::move(attribute));
  } else {
    attributes_[at->second].second = std::move(attribute);
  }
}

void GraphModule::set_submodule(const std::string& name, std::shared_ptr<GraphModule> module) {
  if (name.empty()) throw GraphError("", "submodule", "the name is empty");
  if (module == nullptr) throw GraphError("", "submodule " + name, "the module is null");
  if (attribute_index_.contains(name)) throw GraphError("", "submodule " + name, "an attribute has this name");
  if (const auto way = way_to(*module, *this)) {
    throw GraphError("", "submodule " + name,
                     way->empty() ? "a module cannot contain itself" : "it contains this module, as '" + *way + "'");
  }
  const auto [at, is_new] = submodule_index_.emplace(name, submodules_.size());
  if (is_new) {
    submodules_.emplace_back(name, std::move(module));
  } else {
    submodules_[at->second].second = std::move(module);
  }
}

void GraphModule::remove_submodule(const std::string& name) {
  const auto at = submodule_index_.find(name);
  if (at == submodule_index_.end()) return;
  submodules_.erase(submodules_.begin() + static_cast<std::ptrdiff_t>(at->second));
  for (auto& [other, index] : submodule_index_) index -= index > at->second ? 1 : 0;
  submodule_index_.erase(at);
}

const Attribute* GraphModule::find_attribute(std::string_view name) const noexcept {
  const auto own = attribute_index_.find(std::string(name));
  if (own != attribute_index_.end()) return &attributes_[own->second].second;
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    const auto module = submodule_index_.find(std::string(name.substr(0, dot)));
    if (module == submodule_index_.end()) continue;
    if (const Attribute* found = submodules_[module->second].second->find_attribute(name.substr(dot + 1))) return found;
  }
  return nullptr;
}

std::shared_ptr<GraphModule> GraphModule::find_submodule(std::string_view name) const noexcept {
  const auto own = submodule_index_.find(std::string(name));
  if (own != submodule_index_.end()) return submodules_[own->second].second;
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    const auto module = submodule_index_.find(std::string(name.substr(0, dot)));
    if (module == submodule_index_.end()) continue;
    if (auto found = submodules_[module->second].second->find_submodule(name.substr(dot + 1))) return found;
  }
  return nullptr;
}

std::shared_ptr<GraphModule> copy_graph_module(const GraphModule& module) {
  auto copy = std::make_shared<GraphModule>(module.type());
  NodeMap copies;
  const auto map = [&](Node& node) -> Argument { return copy_of(copies, node); };
  for (const Node& node : module.graph()) copies[&node] = &copy->graph().copy_node(node, map);
  for (const auto& [name, attribute] : module.attributes()) copy->set_attribute(name, attribute);
  for (const auto& [name, submodule] : module.submodules()) copy->set_submodule(name, submodule);
  return copy;
}

}  // namespace rehearse::graph
