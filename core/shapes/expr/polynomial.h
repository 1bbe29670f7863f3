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

// What a polynomial takes as indivisible.
struct Atom {
  AtomKind kind;
  std::string name;                    // of a symbol
  std::vector<Expr> operands;          // FloorDiv, Mod: dividend, divisor. Min, Max: two or more, in order. Where: none
  std::optional<Condition> condition;  // of Where, which is 1 where it holds, else 0
  int depth = 0;                       // of functions in one another
  std::size_t weight = 1;              // atoms within, and itself, as a walk over all meets them
};
using AtomPtr = std::shared_ptr<const Atom>;

struct Factor {
  AtomPtr atom;
  std::int64_t exponent = 1;  // > 0
};
using Monomial = std::vector<Factor>;  // in order of atoms, each once; empty: 1

struct Term {
  Monomial monomial;
  std::int64_t coefficient = 0;  // never 0 in a polynomial
};
using Terms = std::vector<Term>;  // of higher degree first, then lexicographically; each monomial once

struct Polynomial {
  Terms terms;
  int depth = 0;
  std::size_t weight = 0;
};

// Access to what Expr hides.
struct ExprParts {
  // A number has terms, too: one, or none for 0.
  static Terms terms(const Expr& expr);
  // Null for a number.
  static const Polynomial* polynomial(const Expr& expr) noexcept { return expr.polynomial_.get(); }
  // `terms` in order.
  static Expr make(Terms terms);
  static Expr make(Atom atom);
  static Expr make(const AtomPtr& atom);
  static Expr make(const Term& term);
  // The atom that the expression is, or null.
  static const Atom* atom(const Expr& expr) noexcept;
};

// Names in their natural order: s2 before s10.
std::strong_ordering compare_names(const std::string& left, const std::string& right);
std::strong_ordering compare(const Atom& left, const Atom& right);
// What comes first in a polynomial is less. Multiplying both by the same keeps the order.
std::strong_ordering compare(const Monomial& left, const Monomial& right);

Monomial multiply(const Monomial& left, const Monomial& right);
std::optional<Monomial> divide(const Monomial& dividend, const Monomial& divisor);
Monomial common_factor(const Monomial& left, const Monomial& right);

// The quotient where the division leaves nothing over: of polynomials over the integers.
std::optional<Expr> divide_exactly(const Expr& dividend, const Expr& divisor);

// Calls visit(const Atom&) for each atom, also within others.
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
