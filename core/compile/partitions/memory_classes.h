// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

// For each input of a graph, a tensor or not, the memory in which it lies; null: in none, or it is not known.
using InputMemory = std::vector<const void*>;

// Which values of a split graph may lie in the same memory, by the schemas of the operators that made them: a view and
// what it is of, a tensor before and after a change in place. Values of different classes never do.
class MemoryClasses {
 public:
  // `inputs`: of the graph's placeholders, or empty, where no two of them lie in the same memory.
  explicit MemoryClasses(const graph::GraphModule& split, const InputMemory& inputs = {});

  // Whether a node of the graph itself writes to the memory of a placeholder.
  bool writes_to_inputs(const graph::GraphModule& module) const;

  // Of a node of the graph or of one of the pieces that it calls.
  std::size_t of(const graph::Node& node) const { return root(places_.at(&node)); }

 private:
  void visit(const graph::GraphModule& module);
  std::size_t place_of(const graph::Node& node, const graph::GraphModule& module);
  std::size_t place_of_call(const graph::Node& node);
  std::size_t place_of_item(const graph::Node& node);
  std::size_t place_of_piece(const graph::Node& call, const graph::GraphModule& piece);
  std::size_t joined(const graph::Argument& argument);
  std::size_t new_place();
  std::size_t root(std::size_t place) const;

  std::unordered_map<const graph::Node*, std::size_t> places_;
  std::unordered_map<const graph::Node*, std::vector<std::size_t>> items_;  // of what a piece returns
  std::vector<std::size_t> parents_;                                        // of a forest, one tree for each class
};

}  // namespace rehearse::compiler
