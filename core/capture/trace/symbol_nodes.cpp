// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/symbol_nodes.h"

#include <utility>

#include <rehearse/capture/errors.h>
#include <rehearse/shapes/sym_node.h>

#include "shapes/expr/polynomial.h"

namespace rehearse::capture {

using graph::Argument;
using graph::Node;
using shapes::Expr;

namespace {

void set_scalar(Node& node, const Expr& expression) {
  node.meta().set_value(graph::SymScalarMeta{graph::SymScalarMeta::Kind::Int, {expression.text()}});
}

}  // namespace

Argument SymbolNodes::argument(const c10::SymInt& value) {
  if (const auto number = value.maybe_as_int()) return *number;
  return argument(shapes::expr_of(value));
}

Argument SymbolNodes::argument(const Expr& expression) {
  if (expression.is_number()) return expression.number();
  return node(expression);
}

void SymbolNodes::bind(const std::string& symbol, Node& node) {
  const Expr expression = Expr::symbol(symbol);
  set_scalar(node, expression);
  nodes_.emplace(expression, &node);
}

Node& SymbolNodes::node(const Expr& expression) {
  if (const auto found = nodes_.find(expression); found != nodes_.end()) return *found->second;
  if (expression.is_symbol()) return find_(expression.symbol_name());
  const Argument made = sum(expression);
  nodes_.emplace(expression, made.node());
  return *made.node();
}

Node& SymbolNodes::binary(const char* target, Argument left, Argument right, const Expr& result) {
  if (const auto found = nodes_.find(result); found != nodes_.end()) return *found->second;
  Node& node = graph_.call(target, {std::move(left), std::move(right)});
  set_scalar(node, result);
  nodes_.emplace(result, &node);
  return node;
}

Argument SymbolNodes::sum(const Expr& expression) {
  Argument total;
  Expr so_far;
  for (const shapes::Term& term : shapes::ExprParts::terms(expression)) {
    const Expr added = shapes::ExprParts::make(term);
    const Argument value = added.is_number() ? Argument(added.number()) : product(term);
    so_far = so_far + added;
    total = total.is_none() ? value : Argument(binary("_operator.add", total, value, so_far));
  }
  return total;
}

Argument SymbolNodes::product(const shapes::Term& term) {
  Argument total;
  Expr so_far = 1;
  const auto multiply = [&](const Expr& factor, const Argument& value) {
    so_far = so_far * factor;
    total = total.is_none() ? value : Argument(binary("_operator.mul", total, value, so_far));
  };
  for (const shapes::Factor& factor : term.monomial) {
    const Expr base = shapes::ExprParts::make(factor.atom);
    const Argument value = base.is_symbol() ? argument(base) : function(*factor.atom, base);
    for (std::int64_t i = 0; i < factor.exponent; ++i) multiply(base, value);
  }
  if (term.coefficient != 1) multiply(term.coefficient, term.coefficient);
  return total;
}

Argument SymbolNodes::function(const shapes::Atom& atom, const Expr& expression) {
  if (const auto found = nodes_.find(expression); found != nodes_.end()) return *found->second;
  const char* target = atom.kind == shapes::AtomKind::FloorDiv ? "_operator.floordiv"
                       : atom.kind == shapes::AtomKind::Mod    ? "_operator.mod"
                       : atom.kind == shapes::AtomKind::Min    ? "torch.sym_min"
                       : atom.kind == shapes::AtomKind::Max    ? "torch.sym_max"
                                                               : nullptr;
  if (target == nullptr) {
    throw NotCapturable("a size is " + expression.text(), "Make the case distinction with operators on tensors.",
                        graph_.site());
  }
  Argument total = argument(atom.operands.front());
  Expr so_far = atom.operands.front();
  for (std::size_t i = 1; i < atom.operands.size(); ++i) {
    const Expr& next = atom.operands[i];
    so_far = atom.kind == shapes::AtomKind::FloorDiv ? shapes::floordiv(so_far, next)
             : atom.kind == shapes::AtomKind::Mod    ? shapes::mod(so_far, next)
             : atom.kind == shapes::AtomKind::Min    ? shapes::min(so_far, next)
                                                     : shapes::max(so_far, next);
    total = Argument(binary(target, total, argument(next), so_far));
  }
  return total;
}

}  // namespace rehearse::capture
