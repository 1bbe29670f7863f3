// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <c10/core/SymInt.h>

#include <rehearse/graph/graph_module.h>
#include <rehearse_internal/shapes/lower.h>

namespace rehearse::capture {

// Turns symbolic integers into nodes of the graph under recording, as Dynamo does. The nodes do arithmetic
// (`_operator.mul`, `torch.sym_max`, ...) on the nodes that have the symbols' values. Each expression gets one node.
class ExpressionNodes {
 public:
  using MakeCall = std::function<graph::Node&(const std::string& target, graph::List arguments)>;
  using NodeOfSymbol = std::function<graph::Node&(const std::string& symbol)>;

  // `make_call`: adds a node at the current end of the recording. `node_of_symbol`: makes a node for a symbol that is
  // not bound yet. If it is empty, such a symbol causes a GraphError.
  explicit ExpressionNodes(MakeCall make_call, NodeOfSymbol node_of_symbol = {})
      : make_call_(std::move(make_call)), node_of_symbol_(std::move(node_of_symbol)) {}

  // Declares that `node` has the value of `expr`. The first binding stays.
  void bind(const shapes::Expr& expr, graph::Node& node) { nodes_.emplace(expr, &node); }
  // Like bind(), for a symbol. Also sets the node's metadata to the symbol.
  void bind_symbol(const std::string& symbol, graph::Node& node);
  // Like bind(), but `make` adds the node when the expression is first used.
  void bind_lazily(const shapes::Expr& expr, std::function<graph::Node&()> make) {
    makers_.emplace(expr, std::move(make));
  }
  bool knows(const shapes::Expr& expr) const { return nodes_.contains(expr) || makers_.contains(expr); }
  bool knows_symbol(const std::string& symbol) const { return knows(shapes::Expr::symbol(symbol)); }

  // The number itself, or the node that has the value.
  graph::Argument of(const shapes::Expr& expr);
  graph::Argument of(const c10::SymInt& value);
  // Nodes that compute the condition as written, whatever is known of its symbols. Returns a constant if the condition
  // is one.
  graph::Argument truth_of(const shapes::Condition& condition);

 private:
  // Builds nodes for an expression that is no number and has no node yet.
  graph::Argument built(const shapes::Expr& expr);
  graph::Argument sum_of(const std::vector<shapes::TermView>& terms);
  graph::Argument product_of(const shapes::TermView& term);
  graph::Argument power_of(const shapes::FactorView& factor);
  graph::Argument atom_of(const shapes::Expr& expr);
  graph::Argument value(const std::string& function, graph::List arguments, const shapes::Expr& result);
  graph::Argument truth(const std::string& function, graph::List arguments, const shapes::Condition& result);

  MakeCall make_call_;
  NodeOfSymbol node_of_symbol_;
  std::map<shapes::Expr, graph::Node*> nodes_;
  std::map<shapes::Expr, std::function<graph::Node&()>> makers_;
};

graph::SymScalarMeta meta_of(const shapes::Expr& expr);

}  // namespace rehearse::capture
