// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// The nodes between two marks (body_marks.h), and whether they can become the body of one node.
class BodyNodes {
 public:
  BodyNodes(graph::GraphModule& module, graph::Node& begin, graph::Node& end);

  // Moves the nodes of numbers to a place before the begin mark, if the numbers depend only on values from outside.
  // Thus the graph computes each of these numbers once, for all of its nodes. Numbers that are read from data stay
  // where they are.
  void hoist_numbers();
  // Takes the nodes and the end mark out of the graph. Nothing outside may use them. The begin mark stays.
  void erase();

  // The reason why the nodes cannot become a body; nothing if they can.
  std::optional<std::string> cannot_be_body() const;

  graph::Node& begin() const noexcept { return begin_; }
  graph::Node& end() const noexcept { return end_; }
  const std::vector<graph::Node*>& nodes() const noexcept { return nodes_; }
  bool has(const graph::Node& node) const { return known_.contains(&node); }
  const std::string& operation() const;
  std::vector<graph::Node*> inputs() const;   // as passed to the begin mark
  std::vector<graph::Node*> results() const;  // results that are nodes of the body, each once

 private:
  bool uses_only_outside(const graph::Node& node) const;
  std::optional<std::string> write_to_outside() const;
  std::optional<std::string> use_outside() const;
  std::unordered_set<const graph::Node*> sharing_outside() const;

  graph::GraphModule& module_;
  graph::Node& begin_;
  graph::Node& end_;
  std::vector<graph::Node*> nodes_;
  std::unordered_set<const graph::Node*> known_;
};

}  // namespace rehearse::capture
