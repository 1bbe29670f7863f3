// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/shapes/condition.h>
#include <rehearse/shapes/expr.h>

namespace rehearse::shapes {

// An indivisible part of a polynomial.
struct Atom {
  AtomKind kind;
  std::string name;                    // for a symbol
  std::vector<Expr> operands;          // FloorDiv, Mod: dividend, divisor. Min, Max: two or more, in order. Where: none
  std::optional<Condition> condition;  // for Where, whose value is 1 if the condition holds, else 0
  int depth = 0;                       // nesting depth of functions
  std::size_t weight = 1;              // number of atoms in it, including itself, counted with repetitions
};
using AtomPtr = std::shared_ptr<const Atom>;

struct Factor {
  AtomPtr atom;
  std::int64_t exponent = 1;  // > 0
};
using Monomial = std::vector<Factor>;  // sorted by atom, each atom once; empty: 1

struct Term {
  Monomial monomial;
  std::int64_t coefficient = 0;  // never 0 in a polynomial
};
using Terms = std::vector<Term>;  // by decreasing degree, then lexicographically; each monomial once

struct Polynomial {
  Terms terms;
  int depth = 0;
  std::size_t weight = 0;
};

// Gives this room access to the private parts of Expr.
struct ExprParts {
  // A number has one term, or none if it is 0.
  static Terms terms(const Expr& expr);
  // Null for a number.
  static const Polynomial* polynomial(const Expr& expr) noexcept { return expr.polynomial_.get(); }
  // `terms` must be sorted.
  static Expr make(Terms terms);
  static Expr make(Atom atom);
  static Expr make(const AtomPtr& atom);
  static Expr make(const Term& term);
  // The atom if the expression is a single atom; else null.
  static const Atom* atom(const Expr& expr) noexcept;
};

// Compares names in natural order: s2 before s10.
std::strong_ordering compare_names(const std::string& left, const std::string& right);
std::strong_ordering compare(const Atom& left, const Atom& right);
// The monomial that comes first in a polynomial is less. Multiplying both by the same monomial keeps their order.
std::strong_ordering compare(const Monomial& left, const Monomial& right);

Monomial multiply(const Monomial& left, const Monomial& right);
std::optional<Monomial> divide(const Monomial& dividend, const Monomial& divisor);
Monomial common_factor(const Monomial& left, const Monomial& right);

// The quotient of two polynomials over the integers; nothing if the division leaves a remainder or exceeds a limit.
std::optional<Expr> divide_exactly(const Expr& dividend, const Expr& divisor);

// Calls visit(const Atom&) for each atom, including nested ones.
template <class Visit>
void for_each_atom(const Expr& expr, Visit&& visit);
template <class Visit>
void for_each_atom(const Condition& condition, Visit&& visit) {
  if (condition.is_comparison()) return for_each_atom(condition.expr(), visit);
  if (condition.is_constant()) return;
  for (const Condition& operand : condition.operands()) for_each_atom(operand, visit);
}
template <class Visit>
void for_each_atom(const Expr& expr, Visit&& visit) {
  const Polynomial* polynomial = ExprParts::polynomial(expr);
  if (polynomial == nullptr) return;
  for (const Term& term : polynomial->terms) {
    for (const Factor& factor : term.monomial) {
      visit(*factor.atom);
      for (const Expr& operand : factor.atom->operands) for_each_atom(operand, visit);
      if (factor.atom->condition) for_each_atom(*factor.atom->condition, visit);
    }
  }
}

}  // namespace rehearse::shapes
