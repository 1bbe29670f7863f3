// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/shapes/condition.h>
#include <rehearse/shapes/expr.h>

// Lowers expressions to steps of two operands each. A Builder makes a node or an instruction from each step.
namespace rehearse::shapes {

// base**exponent. `base` is a symbol or a function (see AtomKind), never a sum, product or number.
struct FactorView {
  Expr base;
  std::int64_t exponent = 1;
};

struct TermView {
  std::int64_t coefficient = 0;
  std::vector<FactorView> factors;  // empty: this term is the constant, the last term
};

struct AtomView {
  AtomKind kind = AtomKind::Symbol;
  std::vector<Expr> operands;          // FloorDiv and Mod: dividend, divisor. Min and Max: two or more
  std::optional<Condition> condition;  // for Where; its value is 1 if the condition holds, else 0
};

std::vector<TermView> terms_of(const Expr& expr);
// Throws ShapeError if the expression is a number, sum or product.
AtomView atom_of(const Expr& expr);

enum class Operation {
  Add,
  Subtract,
  Multiply,
  FloorDivide,  // as Python's //
  Remainder,    // as Python's %
  Minimum,
  Maximum,
  Equal,
  NotEqual,
  AtMost,  // <=
  And,
  Or
};

// Computes expressions with a Builder:
//   using Value = ...;
//   Value number(std::int64_t);
//   Value symbol(const std::string& name);
//   Value apply(Operation, const Value& left, const Value& right);
//   Value as_int(const Value& truth);                 // 1 or 0
//   std::optional<Value> find(const Expr&);           // a value made before, to be used again
//   void made(const Expr&, const Value&);             // called for each expression and factor, except numbers
template <class Builder>
class Lowering {
 public:
  using Value = typename Builder::Value;

  explicit Lowering(Builder& builder) : builder_(builder) {}

  Value operator()(const Expr& expr) {
    if (expr.is_number()) return builder_.number(expr.number());
    if (std::optional<Value> known = builder_.find(expr)) return *std::move(known);
    Value value = build(expr);
    builder_.made(expr, value);
    return value;
  }

  Value operator()(const Condition& condition) {
    if (condition.is_constant()) return builder_.number(condition.is_true() ? 1 : 0);
    if (condition.is_comparison()) return compare(condition);
    const Operation join = condition.kind() == Condition::Kind::And ? Operation::And : Operation::Or;
    const std::vector<Condition>& operands = condition.operands();
    Value value = (*this)(operands.front());
    for (std::size_t i = 1; i < operands.size(); ++i) value = builder_.apply(join, value, (*this)(operands[i]));
    return value;
  }

 private:
  Value build(const Expr& expr) {
    const std::vector<TermView> terms = terms_of(expr);
    if (terms.size() == 1) return build_term(terms.front(), terms.front().coefficient);
    // Begins with the first positive term, if there is one.
    std::size_t first = 0;
    while (first < terms.size() && terms[first].coefficient < 0) ++first;
    if (first == terms.size()) first = 0;
    Value sum = build_term(terms[first], terms[first].coefficient);
    for (std::size_t i = 0; i < terms.size(); ++i) {
      if (i == first) continue;
      const bool negative = terms[i].coefficient < 0 && terms[i].coefficient != INT64_MIN;
      const std::int64_t size = negative ? -terms[i].coefficient : terms[i].coefficient;
      sum = builder_.apply(negative ? Operation::Subtract : Operation::Add, sum, build_term(terms[i], size));
    }
    return sum;
  }

  Value build_term(const TermView& term, std::int64_t coefficient) {
    std::optional<Value> product;
    for (const FactorView& factor : term.factors) {
      const Value base = build_factor(factor.base);
      for (std::int64_t i = 0; i < factor.exponent; ++i) {
        product = product ? builder_.apply(Operation::Multiply, *product, base) : base;
      }
    }
    if (!product) return builder_.number(coefficient);
    return coefficient == 1 ? *product : builder_.apply(Operation::Multiply, *product, builder_.number(coefficient));
  }

  Value build_factor(const Expr& base) {
    if (std::optional<Value> known = builder_.find(base)) return *std::move(known);
    Value value = build_atom(base);
    builder_.made(base, value);
    return value;
  }

  Value build_atom(const Expr& base) {
    if (base.is_symbol()) return builder_.symbol(base.symbol_name());
    const AtomView atom = atom_of(base);
    if (atom.kind == AtomKind::Where) return builder_.as_int((*this)(*atom.condition));
    Value value = (*this)(atom.operands.front());
    for (std::size_t i = 1; i < atom.operands.size(); ++i) {
      value = builder_.apply(operation_of(atom.kind), value, (*this)(atom.operands[i]));
    }
    return value;
  }

  Value compare(const Condition& condition) {
    const auto [left, right] = sides_of(condition);
    const Operation operation = condition.kind() == Condition::Kind::Equal      ? Operation::Equal
                                : condition.kind() == Condition::Kind::NotEqual ? Operation::NotEqual
                                                                                : Operation::AtMost;
    return builder_.apply(operation, (*this)(left), (*this)(right));
  }

  static Operation operation_of(AtomKind kind) {
    switch (kind) {
      case AtomKind::FloorDiv:
        return Operation::FloorDivide;
      case AtomKind::Mod:
        return Operation::Remainder;
      case AtomKind::Min:
        return Operation::Minimum;
      default:
        return Operation::Maximum;
    }
  }

  // The sides of a comparison. Subtracted terms move from the left side to the right one.
  static std::pair<Expr, Expr> sides_of(const Condition& condition) {
    Expr left;
    Expr right;
    for (const TermView& term : terms_of(condition.expr())) {
      Expr value = term.coefficient;
      for (const FactorView& factor : term.factors) value = value * power(factor.base, factor.exponent);
      if (term.coefficient < 0 && term.coefficient != INT64_MIN) {
        right = right - value;
      } else {
        left = left + value;
      }
    }
    return {left, right};
  }

  Builder& builder_;
};

}  // namespace rehearse::shapes
