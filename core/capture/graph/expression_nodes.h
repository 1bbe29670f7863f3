// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <c10/core/SymInt.h>

#include <rehearse/graph/graph_module.h>
#include <rehearse/shapes/expr.h>

#include "shapes/expr/polynomial.h"

namespace rehearse::capture {

// Symbolic integers as nodes of a graph that is being recorded: arithmetic on the nodes that have the symbols' values
// (`_operator.mul`, `torch.sym_max`, ...), one node for each expression. New nodes go where the graph's insertion point
// is.
class ExpressionNodes {
 public:
  explicit ExpressionNodes(graph::Graph& graph) : graph_(graph) {}

  // A node that has the value. What is bound first stays.
  void bind(const shapes::Expr& expr, graph::Node& node) { nodes_.emplace(expr, &node); }
  // Made when it is wanted.
  void bind_lazily(const shapes::Expr& expr, std::function<graph::Node&()> make) {
    makers_.emplace(expr, std::move(make));
  }
  bool knows(const shapes::Expr& expr) const { return nodes_.contains(expr) || makers_.contains(expr); }

  // A number, or the node that has the value. Throws GraphError for a symbol that is bound to nothing.
  graph::Argument of(const shapes::Expr& expr);
  graph::Argument of(const c10::SymInt& value);

 private:
  graph::Argument sum_of(const shapes::Expr& expr);
  graph::Argument product_of(const shapes::Term& term);
  graph::Argument power_of(const shapes::Factor& factor);
  graph::Argument atom_of(const shapes::Atom& atom);
  graph::Argument truth_of(const shapes::Condition& condition);
  graph::Node& call(std::string_view function, graph::List arguments, graph::SymScalarMeta meta);

  graph::Graph& graph_;
  std::map<shapes::Expr, graph::Node*> nodes_;
  std::map<shapes::Expr, std::function<graph::Node&()>> makers_;
};

// What a node says of a symbolic integer.
graph::SymScalarMeta meta_of(const shapes::Expr& expr);

}  // namespace rehearse::capture
