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
  at::Tensor tensor;         // undefined when only its metadata is known
  bool ddp_ignored = false;  // DDP was told to ignore it
};

// A graph together with what its GetAttr and CallModule nodes name. A leaf (a Linear that was not traced
// through) has attributes and an empty graph. Modules are shared: two nodes may call the same one. Not
// copied; see copy_graph_module().
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

  // Names may contain dots. Setting a name again replaces what it held. Throws GraphError when the name is
  // empty, or taken by the other kind, and when a submodule is this module or contains it: there are no cycles.
  void set_attribute(const std::string& name, Attribute attribute);
  void set_submodule(const std::string& name, std::shared_ptr<GraphModule> module);
  void remove_submodule(const std::string& name);  // nothing happens when there is none

  // Own ones, in the order in which they were set.
  const std::vector<std::pair<std::string, Attribute>>& attributes() const noexcept { return attributes_; }
  const std::vector<std::pair<std::string, std::shared_ptr<GraphModule>>>& submodules() const noexcept {
    return submodules_;
  }

  // By qualified name: an own one of that name, or `a.b.c` through submodules `a`, `a.b`. Null when there is
  // none. Attributes stay where they are until one is set.
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

// The same graph with nodes of its own; metadata, tensors and submodules are shared with `module`. Throws GraphError
// when a node stands before one that it uses.
std::shared_ptr<GraphModule> copy_graph_module(const GraphModule& module);

}  // namespace rehearse::graph
