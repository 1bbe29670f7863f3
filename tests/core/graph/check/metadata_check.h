// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <set>
#include <string>

#include <rehearse/graph/graph.h>

namespace rehearse::graph {

// Checks the metadata of a graph's nodes, each by itself and against the nodes before it.
class MetadataCheck {
 public:
  using Add = std::function<void(const std::string& field, const std::string& message)>;

  // Calls `add` for each problem of the node under check.
  MetadataCheck(const Graph& graph, Add add);

  void check(const Node& node);  // call it in the graph's order

 private:
  void check_value(const ValueMeta& value, const std::string& field) const;
  void check_tensor(const TensorMeta& tensor, const std::string& field) const;
  void check_size(const SymInt& size, const std::string& field) const;
  void check_symbols(const Node& node, const ValueMeta& value);
  void check_item(const Node& node, const ValueMeta& value) const;

  Add add_;
  bool binds_symbols_ = false;
  std::set<std::string> bound_;
};

}  // namespace rehearse::graph
