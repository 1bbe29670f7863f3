// SPDX-License-Identifier: BSD-3-Clause
// Interval arithmetic. Combines three forms of an expression, because each form loses different information. The
// example after each form is a bound that this form finds if s0 and s1 are at least 2:
//   * as it stands: `s0*s1 >= 4`;
//   * with each atom replaced by its least value plus something that is not negative: `s0*s1 - s0 >= 2`;
//   * with floor divisions by numbers replaced by (dividend - remainder)/divisor: `s0 - s0//2 >= 1`.
#include <rehearse_internal/shapes/range.h>

#include <algorithm>
#include <array>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/shapes/attempt.h>

#include "shapes/expr/bounds/interval.h"
#include "shapes/expr/checked.h"
#include "shapes/expr/polynomial.h"

namespace rehearse::shapes {
namespace {

Range direct(const Expr& expr, const RangeOf& known);

Range range_of_atom(const AtomPtr& atom, const RangeOf& known) {
  const Range fact = known(ExprParts::make(atom));
  const auto operand = [&](std::size_t i) { return range_of(atom->operands[i], known); };
  switch (atom->kind) {
    case AtomKind::Symbol:
      return fact;
    case AtomKind::FloorDiv:
      return intersection(fact, interval::floordiv(operand(0), operand(1)));
    case AtomKind::Mod:
      return intersection(fact, interval::mod(operand(0), operand(1)));
    case AtomKind::Where:
      return intersection(fact, {0, 1});
    case AtomKind::Min:
    case AtomKind::Max:
      break;
  }
  Range result = operand(0);
  const bool is_min = atom->kind == AtomKind::Min;
  for (std::size_t i = 1; i < atom->operands.size(); ++i) {
    const Range next = operand(i);
    result = is_min ? Range{std::min(result.lower, next.lower), std::min(result.upper, next.upper)}
                    : Range{std::max(result.lower, next.lower), std::max(result.upper, next.upper)};
  }
  return intersection(fact, result);
}

// The range of the term without its coefficient. Uses facts about the product, such as `s0*s1 <= 10`.
Range range_of_monomial(const Term& term, const RangeOf& known) {
  Range product{1, 1};
  for (const Factor& factor : term.monomial) {
    product = interval::multiply(product, interval::power(range_of_atom(factor.atom, known), factor.exponent));
  }
  const bool is_atom = term.monomial.size() == 1 && term.monomial[0].exponent == 1;
  if (term.monomial.empty() || is_atom) return product;
  return intersection(product, known(ExprParts::make(Term{term.monomial, 1})));
}

Range direct(const Expr& expr, const RangeOf& known) {
  Range sum{0, 0};
  Terms varying;
  for (const Term& term : ExprParts::terms(expr)) {
    sum = interval::add(sum, interval::multiply({term.coefficient, term.coefficient}, range_of_monomial(term, known)));
    if (!term.monomial.empty()) varying.push_back(term);
  }
  if (varying.size() < 2) return sum;  // range_of_atom() has used facts about a single atom
  // Uses facts about the sum without its constant.
  const Terms terms = ExprParts::terms(expr);
  const std::int64_t constant = terms.back().monomial.empty() ? terms.back().coefficient : 0;
  return intersection(sum, interval::add(known(ExprParts::make(std::move(varying))), {constant, constant}));
}

// A lower bound of `expr`. Writes each atom as its least value plus a difference that is not negative. If no term with
// a difference has a negative coefficient, the constant is the bound. Unbounded otherwise, and if an atom has no least
// value.
std::int64_t lower_when_shifted(const Expr& expr, const RangeOf& known) {
  Expr shifted;
  for (const Term& term : ExprParts::terms(expr)) {
    Expr product = term.coefficient;
    for (const Factor& factor : term.monomial) {
      const std::int64_t lower = range_of_atom(factor.atom, known).lower;
      if (lower == Range::kUnboundedBelow) return Range::kUnboundedBelow;
      // In `shifted`, the atom stands for its own difference from `lower`.
      product = product * power(ExprParts::make(factor.atom) + lower, factor.exponent);
    }
    shifted = shifted + product;
  }
  std::int64_t constant = 0;
  for (const Term& term : ExprParts::terms(shifted)) {
    if (term.monomial.empty()) {
      constant = term.coefficient;
    } else if (term.coefficient < 0) {
      return Range::kUnboundedBelow;
    }
  }
  return constant;
}

Range shifted(const Expr& expr, const RangeOf& known) {
  if (ExprParts::terms(expr).size() < 2) return {};
  return {lower_when_shifted(expr, known), interval::negate(lower_when_shifted(-expr, known))};
}

// Finds a floor division by a number, with exponent 1, among the factors of all terms. Null if there is none.
const Atom* division_in(const Expr& expr) {
  for (const Term& term : ExprParts::terms(expr)) {
    for (const Factor& factor : term.monomial) {
      const Atom& atom = *factor.atom;
      if (atom.kind == AtomKind::FloorDiv && factor.exponent == 1 && atom.operands[1].is_number()) return &atom;
    }
  }
  return nullptr;
}

// Returns `expr` times the divisor of `division`, without the division: `division * divisor` becomes
// `dividend - remainder`.
Expr without_division(const Expr& expr, const Atom& division) {
  const Expr& divisor = division.operands[1];
  const Expr multiple = division.operands[0] - mod(division.operands[0], divisor);
  Expr sum;
  for (const Term& term : ExprParts::terms(expr)) {
    Term rest{{}, term.coefficient};
    bool found = false;
    for (const Factor& factor : term.monomial) {
      const bool here = factor.exponent == 1 && compare(*factor.atom, division) == 0;
      found |= here;
      if (!here) rest.monomial.push_back(factor);
    }
    sum = sum + ExprParts::make(rest) * (found ? multiple : divisor);
  }
  return sum;
}

Range unfolded(const Expr& expr, const RangeOf& known) {
  constexpr int kDivisionsMax = 4;
  Expr scaled = expr;
  std::int64_t scale = 1;
  for (int i = 0; i < kDivisionsMax; ++i) {
    const Atom* division = division_in(scaled);
    if (division == nullptr) break;
    scale = checked::multiply(scale, division->operands[1].number());
    scaled = without_division(scaled, *division);
  }
  if (scale == 1) return {};
  const Range range = intersection(direct(scaled, known), shifted(scaled, known));
  return {interval::ceildiv_lower(range.lower, scale), interval::floordiv_upper(range.upper, scale)};
}

using View = Range (*)(const Expr&, const RangeOf&);
constexpr std::array<View, 3> kViews = {direct, shifted, unfolded};

Range seen_by(View view, const Expr& expr, const RangeOf& known) try {
  const Attempt attempt;
  return view(expr, known);
} catch (const OverflowError&) {
  return {};
} catch (const ExpressionTooLarge&) {
  return {};
}

std::optional<bool> decide_comparison(Condition::Kind kind, const Range& range) {
  if (kind == Condition::Kind::AtMostZero) {
    if (range.upper <= 0) return true;
    if (range.lower > 0) return false;
    return std::nullopt;
  }
  const bool is_equal = kind == Condition::Kind::Equal;
  if (!range.contains(0)) return !is_equal;
  if (range == Range{0, 0}) return is_equal;
  return std::nullopt;
}

}  // namespace

Range intersection(const Range& left, const Range& right) noexcept {
  return {std::max(left.lower, right.lower), std::min(left.upper, right.upper)};
}

Range range_of(const Expr& expression, const RangeOf& known) {
  if (expression.is_number()) return {expression.number(), expression.number()};
  Range range;
  for (const View view : kViews) range = intersection(range, seen_by(view, expression, known));
  return range;
}

std::optional<bool> decide(const Condition& condition, const RangeOf& known) {
  if (condition.is_constant()) return condition.is_true();
  if (condition.is_comparison()) {
    Range range;
    for (const View view : kViews) {
      range = intersection(range, seen_by(view, condition.expr(), known));
      if (const auto decided = decide_comparison(condition.kind(), range)) return decided;
    }
    return std::nullopt;
  }
  const bool absorbing = condition.kind() == Condition::Kind::Or;
  bool all = true;
  for (const Condition& operand : condition.operands()) {
    const std::optional<bool> decided = decide(operand, known);
    if (decided == absorbing) return absorbing;
    all = all && decided.has_value();
  }
  return all ? std::optional(!absorbing) : std::nullopt;
}

}  // namespace rehearse::shapes
