// SPDX-License-Identifier: BSD-3-Clause
// Floor division and remainder, by identities that hold for every divisor except zero.
#include <numeric>

#include <rehearse/shapes/errors.h>

#include "shapes/expr/checked.h"
#include "shapes/expr/polynomial.h"

namespace rehearse::shapes {
namespace {

// The greatest common divisor of all terms of both lists: the product of a number and a monomial.
Term common_factor_of(const Terms& left, const Terms& right) {
  Term common{right.front().monomial, 0};
  // The absolute value of the least number does not fit into 64 bits. If a coefficient is that number, the divisor's
  // coefficient is 1; only powers of two would divide the least number anyway.
  bool has_least = false;
  for (const Terms* terms : {&left, &right}) {
    for (const Term& term : *terms) {
      common.monomial = common_factor(common.monomial, term.monomial);
      has_least = has_least || term.coefficient == INT64_MIN;
      if (!has_least) common.coefficient = std::gcd(common.coefficient, term.coefficient);
    }
  }
  if (has_least) common.coefficient = 1;
  return common;
}

bool is_one(const Term& term) { return term.coefficient == 1 && term.monomial.empty(); }

void divide_each(Terms& terms, const Term& factor) {
  for (Term& term : terms) {
    term.monomial = *divide(term.monomial, factor.monomial);
    term.coefficient /= factor.coefficient;
  }
}

bool has_negative_lead(const Expr& expr) {
  return expr.is_number() ? expr.number() < 0 : ExprParts::polynomial(expr)->terms.front().coefficient < 0;
}

// Moves multiples of `divisor` out of `terms` and returns them divided by it. Moves terms that are divisible as a
// whole, and the divisible share of the constant. `all`: moves the divisible share of every coefficient.
Terms take_multiples(Terms& terms, const Term& divisor, bool all) {
  Terms quotient;
  Terms rest;
  for (Term& term : terms) {
    std::optional<Monomial> monomial = divide(term.monomial, divisor.monomial);
    const std::int64_t remainder = checked::mod(term.coefficient, divisor.coefficient);
    const bool taken = monomial && (remainder == 0 || all || term.monomial.empty());
    if (!taken) {
      rest.push_back(std::move(term));
      continue;
    }
    const std::int64_t whole = checked::floordiv(term.coefficient, divisor.coefficient);
    if (whole != 0) quotient.push_back({*std::move(monomial), whole});
    if (remainder != 0) rest.push_back({std::move(term.monomial), remainder});
  }
  terms = std::move(rest);
  return quotient;
}

// (x//y + k)//n is (x + k*y)//(y*n) for n > 0.
std::optional<Expr> flatten_division(const Terms& dividend, std::int64_t divisor) {
  const Term& lead = dividend.front();
  const bool fits = dividend.size() == 1 || (dividend.size() == 2 && dividend[1].monomial.empty());
  if (!fits || lead.coefficient != 1 || lead.monomial.size() != 1 || lead.monomial[0].exponent != 1) return {};
  const Atom& inner = *lead.monomial[0].atom;
  if (inner.kind != AtomKind::FloorDiv) return {};
  const Expr added = dividend.size() == 2 ? Expr(dividend[1].coefficient) : Expr(0);
  return floordiv(inner.operands[0] + added * inner.operands[1], inner.operands[1] * divisor);
}

}  // namespace

Expr floordiv(const Expr& dividend, const Expr& divisor) {
  if (divisor.is_number()) {
    if (dividend.is_number()) return checked::floordiv(dividend.number(), divisor.number());
    if (divisor.number() == 0) throw DivisionByZero("a symbolic size is divided by zero: (" + dividend.text() + ")//0");
    if (divisor.number() == 1) return dividend;
  }
  if (has_negative_lead(divisor)) return floordiv(-dividend, -divisor);
  if (const auto exact = divide_exactly(dividend, divisor)) return *exact;

  Terms above = ExprParts::terms(dividend);
  Terms below = ExprParts::terms(divisor);
  if (const Term common = common_factor_of(above, below); !is_one(common)) {
    divide_each(above, common);
    divide_each(below, common);
    return floordiv(ExprParts::make(std::move(above)), ExprParts::make(std::move(below)));
  }
  if (below.size() == 1) {
    Terms whole = take_multiples(above, below.front(), false);
    if (!whole.empty()) return ExprParts::make(std::move(whole)) + floordiv(ExprParts::make(std::move(above)), divisor);
  }
  if (divisor.is_number()) {
    if (const auto flat = flatten_division(above, divisor.number())) return *flat;
  }
  return ExprParts::make(Atom{AtomKind::FloorDiv, {}, {dividend, divisor}, {}});
}

Expr mod(const Expr& dividend, const Expr& divisor) {
  if (divisor.is_number()) {
    if (dividend.is_number()) return checked::mod(dividend.number(), divisor.number());
    if (divisor.number() == 0)
      throw DivisionByZero("the remainder of a symbolic size by zero: Mod(" + dividend.text() + ", 0)");
    if (divisor.number() == 1) return 0;
  }
  if (has_negative_lead(divisor)) return -mod(-dividend, -divisor);
  if (divide_exactly(dividend, divisor)) return 0;

  Terms above = ExprParts::terms(dividend);
  Terms below = ExprParts::terms(divisor);
  if (below.size() == 1 && !take_multiples(above, below.front(), true).empty()) {
    return mod(ExprParts::make(std::move(above)), divisor);
  }
  if (const Term common = common_factor_of(above, below); !is_one(common)) {
    divide_each(above, common);
    divide_each(below, common);
    return ExprParts::make(common) * mod(ExprParts::make(std::move(above)), ExprParts::make(std::move(below)));
  }
  const Atom* inner = ExprParts::atom(dividend);
  if (inner != nullptr && inner->kind == AtomKind::Mod && divide_exactly(inner->operands[1], divisor)) {
    return mod(inner->operands[0], divisor);
  }
  return ExprParts::make(Atom{AtomKind::Mod, {}, {dividend, divisor}, {}});
}

}  // namespace rehearse::shapes
