// SPDX-License-Identifier: BSD-3-Clause
#include "capture/graph/expression_nodes.h"

#include <utility>

#include <rehearse/graph/errors.h>
#include <rehearse_internal/shapes/sym_node.h>

namespace rehearse::capture {

using graph::Argument;
using shapes::AtomKind;
using shapes::AtomView;
using shapes::Condition;
using shapes::Expr;
using shapes::FactorView;
using shapes::TermView;

namespace {

std::string function_of(AtomKind kind) {
  switch (kind) {
    case AtomKind::FloorDiv:
      return "_operator.floordiv";
    case AtomKind::Mod:
      return "_operator.mod";
    case AtomKind::Min:
      return "torch.sym_min";
    default:
      return "torch.sym_max";
  }
}

Expr combine(AtomKind kind, const Expr& left, const Expr& right) {
  switch (kind) {
    case AtomKind::FloorDiv:
      return shapes::floordiv(left, right);
    case AtomKind::Mod:
      return shapes::mod(left, right);
    case AtomKind::Min:
      return shapes::min(left, right);
    default:
      return shapes::max(left, right);
  }
}

Expr value_of(const TermView& term) {
  Expr value = 1;
  for (const FactorView& factor : term.factors) value = value * shapes::power(factor.base, factor.exponent);
  return term.coefficient * value;
}

// True if the term is a single symbol or function.
bool is_atom(const TermView& term) {
  return term.coefficient == 1 && term.factors.size() == 1 && term.factors[0].exponent == 1;
}

}  // namespace

graph::SymScalarMeta meta_of(const Expr& expr) { return {.expression = expr}; }

void ExpressionNodes::bind_symbol(const std::string& symbol, graph::Node& node) {
  const Expr expr = Expr::symbol(symbol);
  node.meta().set_value(meta_of(expr));
  bind(expr, node);
}

Argument ExpressionNodes::of(const c10::SymInt& value) {
  if (const auto number = value.maybe_as_int()) return *number;
  return of(shapes::expr_of(value));
}

Argument ExpressionNodes::of(const Expr& expr) {
  if (expr.is_number()) return expr.number();
  if (const auto known = nodes_.find(expr); known != nodes_.end()) return *known->second;
  const auto maker = makers_.find(expr);
  const Argument made = maker != makers_.end() ? Argument(maker->second()) : built(expr);
  if (graph::Node* node = made.node()) nodes_.emplace(expr, node);
  return made;
}

Argument ExpressionNodes::built(const Expr& expr) {
  const std::vector<TermView> terms = shapes::terms_of(expr);
  if (terms.size() > 1) return sum_of(terms);
  return is_atom(terms[0]) ? atom_of(expr) : product_of(terms[0]);
}

Argument ExpressionNodes::sum_of(const std::vector<TermView>& terms) {
  Expr so_far = value_of(terms[0]);
  Argument sum = of(so_far);
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const Expr term = value_of(terms[i]);
    so_far = so_far + term;
    sum = value("_operator.add", {sum, of(term)}, so_far);
  }
  return sum;
}

Argument ExpressionNodes::product_of(const TermView& term) {
  Argument product;
  Expr so_far = 1;
  const auto multiply = [&](const Argument& factor, const Expr& expr) {
    so_far = so_far * expr;
    product = product.is_none() ? factor : value("_operator.mul", {product, factor}, so_far);
  };
  for (const FactorView& factor : term.factors) multiply(power_of(factor), shapes::power(factor.base, factor.exponent));
  if (term.coefficient != 1) multiply(term.coefficient, term.coefficient);
  return product;
}

Argument ExpressionNodes::power_of(const FactorView& factor) {
  if (factor.exponent == 1) return of(factor.base);
  return value("_operator.pow", {of(factor.base), factor.exponent}, shapes::power(factor.base, factor.exponent));
}

Argument ExpressionNodes::atom_of(const Expr& expr) {
  const AtomView atom = shapes::atom_of(expr);
  if (atom.kind == AtomKind::Symbol) {
    if (node_of_symbol_) return node_of_symbol_(expr.symbol_name());
    throw graph::GraphError("", "symbols",
                            "no input of the graph and no node before gives the value of " + expr.symbol_name());
  }
  if (atom.kind == AtomKind::Where) return value("_operator.mul", {truth_of(*atom.condition), 1}, expr);
  Expr so_far = atom.operands[0];
  Argument result = of(so_far);
  for (std::size_t i = 1; i < atom.operands.size(); ++i) {
    so_far = combine(atom.kind, so_far, atom.operands[i]);
    result = value(function_of(atom.kind), {result, of(atom.operands[i])}, so_far);
  }
  return result;
}

Argument ExpressionNodes::truth_of(const Condition& condition) {
  if (condition.is_constant()) return condition.is_true();
  if (condition.is_comparison()) {
    const std::string function = condition.kind() == Condition::Kind::Equal      ? "_operator.eq"
                                 : condition.kind() == Condition::Kind::NotEqual ? "_operator.ne"
                                                                                 : "_operator.le";
    return truth(function, {of(condition.expr()), 0}, condition);
  }
  const std::string function = condition.kind() == Condition::Kind::And ? "_operator.and_" : "_operator.or_";
  Argument result = truth_of(condition.operands()[0]);
  for (std::size_t i = 1; i < condition.operands().size(); ++i) {
    result = truth(function, {result, truth_of(condition.operands()[i])}, condition);
  }
  return result;
}

Argument ExpressionNodes::value(const std::string& function, graph::List arguments, const Expr& result) {
  if (result.is_number()) return result.number();
  if (const auto known = nodes_.find(result); known != nodes_.end()) return *known->second;
  graph::Node& node = make_call_(function, std::move(arguments));
  node.meta().set_value(meta_of(result));
  nodes_.emplace(result, &node);
  return node;
}

Argument ExpressionNodes::truth(const std::string& function, graph::List arguments, const Condition& result) {
  graph::Node& node = make_call_(function, std::move(arguments));
  node.meta().set_value(graph::SymScalarMeta{.kind = graph::SymScalarMeta::Kind::Bool, .expression = result});
  return node;
}

}  // namespace rehearse::capture
