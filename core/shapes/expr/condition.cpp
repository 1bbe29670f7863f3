// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/shapes/condition.h>

#include <algorithm>
#include <numeric>

#include <rehearse/shapes/errors.h>

#include "shapes/expr/checked.h"
#include "shapes/expr/polynomial.h"
#include "shapes/expr/symbol_names.h"

namespace rehearse::shapes {
namespace {

// The greatest common divisor of all coefficients except the constant. Returns 1 if one of them is the least number,
// whose absolute value does not fit into 64 bits.
std::int64_t content(const Terms& terms) {
  std::int64_t common = 0;
  for (const Term& term : terms) {
    if (term.monomial.empty()) continue;
    if (term.coefficient == INT64_MIN) return 1;
    common = std::gcd(common, term.coefficient);
  }
  return common;
}

// Divides the coefficients by content(). Rounds the constant up, which does not change the meaning of `<= 0`.
void reduce(Terms& terms) {
  const std::int64_t common = content(terms);
  if (common <= 1) return;
  for (Term& term : terms) {
    const bool exact = term.coefficient % common == 0;
    term.coefficient = exact ? term.coefficient / common : checked::floordiv(term.coefficient, common) + 1;
  }
  std::erase_if(terms, [](const Term& term) { return term.coefficient == 0; });
}

}  // namespace

struct Condition::Parts {
  Expr expr;
  std::vector<Condition> operands;
};

Condition::Condition(Kind kind, Expr expr)
    : kind_(kind), parts_(std::make_shared<const Parts>(Parts{std::move(expr), {}})) {}

Condition::Condition(Kind kind, std::vector<Condition> operands)
    : kind_(kind), parts_(std::make_shared<const Parts>(Parts{{}, std::move(operands)})) {}

Condition Condition::eq(const Expr& left, const Expr& right) {
  const Expr difference = left - right;
  if (difference.is_number()) return difference.number() == 0;
  Terms terms = ExprParts::terms(difference);
  const std::int64_t common = content(terms);
  if (terms.back().monomial.empty() && terms.back().coefficient % common != 0) return false;
  reduce(terms);
  const Expr reduced = ExprParts::make(terms);
  return {Kind::Equal, terms.front().coefficient < 0 ? -reduced : reduced};
}

Condition Condition::ne(const Expr& left, const Expr& right) { return ~eq(left, right); }

Condition Condition::le(const Expr& left, const Expr& right) {
  const Expr difference = left - right;
  if (difference.is_number()) return difference.number() <= 0;
  Terms terms = ExprParts::terms(difference);
  reduce(terms);
  return {Kind::AtMostZero, ExprParts::make(std::move(terms))};
}

Condition Condition::lt(const Expr& left, const Expr& right) { return le(left + 1, right); }

Condition Condition::join(Kind kind, const Condition& left, const Condition& right) {
  const Kind absorbing = kind == Kind::And ? Kind::False : Kind::True;
  if (left.is_constant()) return left.kind_ == absorbing ? left : right;
  if (right.is_constant()) return right.kind_ == absorbing ? right : left;
  std::vector<Condition> operands;
  for (const Condition* side : {&left, &right}) {
    if (side->kind_ == kind) {
      operands.insert(operands.end(), side->operands().begin(), side->operands().end());
    } else {
      operands.push_back(*side);
    }
  }
  std::ranges::sort(operands);
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
  if (operands.size() > kMaxTerms) {
    throw ExpressionTooLarge("a condition has more than " + std::to_string(kMaxTerms) + " parts");
  }
  for (const Condition& operand : operands) {
    if (operand.is_comparison() && std::ranges::binary_search(operands, ~operand)) {
      return kind != Kind::And;
    }
  }
  return operands.size() == 1 ? operands.front() : Condition(kind, std::move(operands));
}

Condition operator&(const Condition& left, const Condition& right) {
  return Condition::join(Condition::Kind::And, left, right);
}

Condition operator|(const Condition& left, const Condition& right) {
  return Condition::join(Condition::Kind::Or, left, right);
}

Condition operator~(const Condition& condition) {
  using Kind = Condition::Kind;
  switch (condition.kind_) {
    case Kind::False:
      return true;
    case Kind::True:
      return false;
    case Kind::Equal:
      return {Kind::NotEqual, condition.expr()};
    case Kind::NotEqual:
      return {Kind::Equal, condition.expr()};
    case Kind::AtMostZero:
      return Condition::le(Expr(1), condition.expr());
    default:
      break;
  }
  const bool was_and = condition.kind_ == Kind::And;
  Condition result = !was_and;
  for (const Condition& operand : condition.operands()) result = was_and ? result | ~operand : result & ~operand;
  return result;
}

const Expr& Condition::expr() const {
  if (!is_comparison()) throw ShapeError("'" + text() + "' is no comparison");
  return parts_->expr;
}

const std::vector<Condition>& Condition::operands() const {
  if (kind_ != Kind::And && kind_ != Kind::Or) throw ShapeError("'" + text() + "' is neither 'and' nor 'or'");
  return parts_->operands;
}

std::vector<std::string> Condition::symbols() const { return symbols_of(*this); }

Condition Condition::substitute(const ExprOf& replacement) const {
  switch (kind_) {
    case Kind::False:
    case Kind::True:
      return *this;
    case Kind::Equal:
      return eq(expr().substitute(replacement), 0);
    case Kind::NotEqual:
      return ne(expr().substitute(replacement), 0);
    case Kind::AtMostZero:
      return le(expr().substitute(replacement), 0);
    default:
      break;
  }
  Condition result = kind_ == Kind::And;
  for (const Condition& operand : operands()) result = join(kind_, result, operand.substitute(replacement));
  return result;
}

std::optional<bool> Condition::evaluate(const ValueOf& value) const {
  if (is_constant()) return is_true();
  if (is_comparison()) {
    const std::optional<std::int64_t> found = expr().evaluate(value);
    if (!found) return std::nullopt;
    return kind_ == Kind::Equal ? *found == 0 : kind_ == Kind::NotEqual ? *found != 0 : *found <= 0;
  }
  const bool absorbing = kind_ == Kind::Or;
  bool all_known = true;
  for (const Condition& operand : operands()) {
    const std::optional<bool> found = operand.evaluate(value);
    if (found == absorbing) return absorbing;
    all_known = all_known && found.has_value();
  }
  return all_known ? std::optional(!absorbing) : std::nullopt;
}

bool operator==(const Condition& left, const Condition& right) { return (left <=> right) == 0; }

std::strong_ordering operator<=>(const Condition& left, const Condition& right) {
  if (left.kind_ != right.kind_) return left.kind_ <=> right.kind_;
  if (left.parts_ == right.parts_) return std::strong_ordering::equal;
  if (left.is_comparison()) return left.expr() <=> right.expr();
  return std::lexicographical_compare_three_way(left.operands().begin(), left.operands().end(),
                                                right.operands().begin(), right.operands().end());
}

}  // namespace rehearse::shapes
