// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <string>

#include <c10/core/SymInt.h>

#include <rehearse/graph/argument.h>
#include <rehearse/shapes/expr.h>

#include "capture/trace/graph_builder.h"

namespace rehearse::shapes {
struct Atom;
struct Term;
}  // namespace rehearse::shapes

namespace rehearse::capture {

// The nodes that stand for symbolic integers, one for each expression: a symbol is the node that brings it into the
// graph, and arithmetic on symbols is nodes of Python's operators, as Dynamo records them.
class SymbolNodes {
 public:
  // `find`: makes the node of a symbol that is not bound yet.
  SymbolNodes(GraphBuilder& graph, std::function<graph::Node&(const std::string& symbol)> find)
      : graph_(graph), find_(std::move(find)) {}

  // A number, or the node that has its value.
  graph::Argument argument(const c10::SymInt& value);
  graph::Argument argument(const shapes::Expr& expression);

  bool is_bound(const std::string& symbol) const { return nodes_.contains(shapes::Expr::symbol(symbol)); }
  void bind(const std::string& symbol, graph::Node& node);

 private:
  graph::Node& node(const shapes::Expr& expression);
  graph::Node& binary(const char* target, graph::Argument left, graph::Argument right, const shapes::Expr& result);
  graph::Argument sum(const shapes::Expr& expression);
  graph::Argument product(const shapes::Term& term);
  graph::Argument function(const shapes::Atom& atom, const shapes::Expr& expression);

  GraphBuilder& graph_;
  std::function<graph::Node&(const std::string&)> find_;
  std::map<shapes::Expr, graph::Node*> nodes_;
};

}  // namespace rehearse::capture
