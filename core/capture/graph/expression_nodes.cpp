// SPDX-License-Identifier: BSD-3-Clause
#include "capture/graph/expression_nodes.h"

#include <utility>

#include <rehearse/graph/errors.h>
#include <rehearse/shapes/sym_node.h>

namespace rehearse::capture {

using graph::Argument;
using shapes::AtomKind;
using shapes::Condition;
using shapes::Expr;
using shapes::ExprParts;

graph::SymScalarMeta meta_of(const Expr& expr) { return {.expression = {expr.text()}}; }

Argument ExpressionNodes::of(const c10::SymInt& value) { return of(shapes::expr_of(value)); }

Argument ExpressionNodes::of(const Expr& expr) {
  if (expr.is_number()) return expr.number();
  const auto known = nodes_.find(expr);
  if (known != nodes_.end()) return *known->second;
  const auto maker = makers_.find(expr);
  const Argument made = maker != makers_.end() ? Argument(maker->second()) : sum_of(expr);
  if (graph::Node* node = made.node()) nodes_.emplace(expr, node);
  return made;
}

Argument ExpressionNodes::sum_of(const Expr& expr) {
  if (const shapes::Atom* atom = ExprParts::atom(expr)) return atom_of(*atom);
  const shapes::Terms terms = ExprParts::terms(expr);
  if (terms.size() == 1) return product_of(terms[0]);
  Argument sum = of(ExprParts::make(terms[0]));
  Expr so_far = ExprParts::make(terms[0]);
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const Expr term = ExprParts::make(terms[i]);
    so_far = so_far + term;
    sum = call("_operator.add", {sum, of(term)}, meta_of(so_far));
  }
  return sum;
}

Argument ExpressionNodes::product_of(const shapes::Term& term) {
  Expr so_far = term.coefficient;
  Argument product = term.coefficient;
  for (const shapes::Factor& factor : term.monomial) {
    const Argument value = power_of(factor);
    so_far = so_far * shapes::power(ExprParts::make(factor.atom), factor.exponent);
    const bool is_one = !product.node() && product.as<std::int64_t>() == 1;
    product = is_one ? value : Argument(call("_operator.mul", {value, product}, meta_of(so_far)));
  }
  return product;
}

Argument ExpressionNodes::power_of(const shapes::Factor& factor) {
  const Expr base = ExprParts::make(factor.atom);
  if (factor.exponent == 1) return of(base);
  const Expr power = shapes::power(base, factor.exponent);
  const auto known = nodes_.find(power);
  if (known != nodes_.end()) return *known->second;
  graph::Node& node = call("_operator.pow", {of(base), factor.exponent}, meta_of(power));
  nodes_.emplace(power, &node);
  return node;
}

Argument ExpressionNodes::atom_of(const shapes::Atom& atom) {
  if (atom.kind == AtomKind::Symbol) {
    throw graph::GraphError("", "symbols", "no input of the graph and no node before gives the value of " + atom.name);
  }
  const graph::SymScalarMeta meta = meta_of(ExprParts::make(atom));
  if (atom.kind == AtomKind::Where) return call("_operator.mul", {truth_of(*atom.condition), 1}, meta);
  const std::string_view function = atom.kind == AtomKind::FloorDiv ? "_operator.floordiv"
                                    : atom.kind == AtomKind::Mod    ? "_operator.mod"
                                    : atom.kind == AtomKind::Min    ? "torch.sym_min"
                                                                    : "torch.sym_max";
  Argument result = of(atom.operands[0]);
  for (std::size_t i = 1; i < atom.operands.size(); ++i) result = call(function, {result, of(atom.operands[i])}, meta);
  return result;
}

Argument ExpressionNodes::truth_of(const Condition& condition) {
  const graph::SymScalarMeta meta{.kind = graph::SymScalarMeta::Kind::Bool, .expression = {condition.text()}};
  if (condition.is_constant()) return condition.is_true();
  if (condition.is_comparison()) {
    const std::string_view function = condition.kind() == Condition::Kind::Equal      ? "_operator.eq"
                                      : condition.kind() == Condition::Kind::NotEqual ? "_operator.ne"
                                                                                      : "_operator.le";
    return call(function, {of(condition.expr()), 0}, meta);
  }
  const bool is_and = condition.kind() == Condition::Kind::And;
  Argument result = truth_of(condition.operands()[0]);
  for (std::size_t i = 1; i < condition.operands().size(); ++i) {
    result = call(is_and ? "_operator.and_" : "_operator.or_", {result, truth_of(condition.operands()[i])}, meta);
  }
  return result;
}

graph::Node& ExpressionNodes::call(std::string_view function, graph::List arguments, graph::SymScalarMeta meta) {
  graph::Node& node = graph_.call_function(std::string(function), std::move(arguments));
  node.meta().set_value(std::move(meta));
  return node;
}

}  // namespace rehearse::capture
