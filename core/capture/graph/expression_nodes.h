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

// Symbolic integers as nodes of a graph that is being recorded: arithmetic on the nodes that have the symbols' values
// (`_operator.mul`, `torch.sym_max`, ...), as Dynamo records it, one node for each expression.
class ExpressionNodes {
 public:
  using MakeCall = std::function<graph::Node&(const std::string& target, graph::List arguments)>;
  using NodeOfSymbol = std::function<graph::Node&(const std::string& symbol)>;

  // `make_call`: puts a new node where the recording is. `node_of_symbol`: of a symbol that is bound to nothing yet;
  // without it that is a GraphError.
  explicit ExpressionNodes(MakeCall make_call, NodeOfSymbol node_of_symbol = {})
      : make_call_(std::move(make_call)), node_of_symbol_(std::move(node_of_symbol)) {}

  // A node that has the value. What is bound first stays.
  void bind(const shapes::Expr& expr, graph::Node& node) { nodes_.emplace(expr, &node); }
  // The same for a symbol, which becomes what the node says of its value.
  void bind_symbol(const std::string& symbol, graph::Node& node);
  // Made when it is wanted.
  void bind_lazily(const shapes::Expr& expr, std::function<graph::Node&()> make) {
    makers_.emplace(expr, std::move(make));
  }
  bool knows(const shapes::Expr& expr) const { return nodes_.contains(expr) || makers_.contains(expr); }
  bool knows_symbol(const std::string& symbol) const { return knows(shapes::Expr::symbol(symbol)); }

  // A number, or the node that has the value.
  graph::Argument of(const shapes::Expr& expr);
  graph::Argument of(const c10::SymInt& value);
  // A truth, or nodes that compute it: as the condition stands, whatever is known of its symbols.
  graph::Argument truth_of(const shapes::Condition& condition);

 private:
  // As the expression says, whether it has a node or not.
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

// What a node says of a symbolic integer.
graph::SymScalarMeta meta_of(const shapes::Expr& expr);

}  // namespace rehearse::capture
