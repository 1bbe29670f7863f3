// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse/graph/graph.h>

namespace rehearse::graph {

// A parameter, buffer or constant of a module.
struct Attribute {
  TensorMeta meta;
  at::Tensor tensor;         // undefined if only the metadata is known
  bool ddp_ignored = false;  // DistributedDataParallel ignores it
};

// A graph together with the attributes and submodules that its GetAttr and CallModule nodes name. A leaf (for example a
// Linear that was not traced into) has attributes and an empty graph. Modules are shared: two nodes may call the same
// one. Not copyable; see copy_graph_module().
class GraphModule {
 public:
  explicit GraphModule(std::string type = "GraphModule") : type_(std::move(type)) {}
  ~GraphModule();
  GraphModule(const GraphModule&) = delete;
  GraphModule& operator=(const GraphModule&) = delete;

  const std::string& type() const noexcept { return type_; }  // "GraphModule", or a leaf's type: "Linear"
  Graph& graph() noexcept { return graph_; }
  const Graph& graph() const noexcept { return graph_; }
  bool is_leaf() const noexcept { return graph_.empty(); }

  // Names may contain dots. Setting a name again replaces its value. Throws GraphError if the name is empty, or if an
  // attribute and a submodule would have the same name. set_submodule() also throws GraphError if the submodule is
  // null, or if it is or contains this module, because cycles are not allowed.
  void set_attribute(const std::string& name, Attribute attribute);
  void set_submodule(const std::string& name, std::shared_ptr<GraphModule> module);
  void remove_submodule(const std::string& name);  // does nothing if there is none

  // The module's own attributes and submodules, in the order in which they were set.
  const std::vector<std::pair<std::string, Attribute>>& attributes() const noexcept { return attributes_; }
  const std::vector<std::pair<std::string, std::shared_ptr<GraphModule>>>& submodules() const noexcept {
    return submodules_;
  }

  // Finds by qualified name: the module's own, or `a.b.c` through submodules `a`, `a.b`. Null if there is none.
  // Pointers to attributes are valid until an attribute is set.
  const Attribute* find_attribute(std::string_view name) const noexcept;
  std::shared_ptr<GraphModule> find_submodule(std::string_view name) const noexcept;

 private:
  std::string type_;
  Graph graph_;
  std::vector<std::pair<std::string, Attribute>> attributes_;
  std::vector<std::pair<std::string, std::shared_ptr<GraphModule>>> submodules_;
  std::unordered_map<std::string, std::size_t> attribute_index_;
  std::unordered_map<std::string, std::size_t> submodule_index_;
};

// Copies the graph: new nodes, with copies of their metadata. Shares tensors and submodules with `module`. A back end
// that changes a graph works on a copy if others need the original. Throws GraphError if a node precedes one that it
// uses.
std::shared_ptr<GraphModule> copy_graph_module(const GraphModule& module);

}  // namespace rehearse::graph
