// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/shapes/attempt.h>

#include "shapes/expr/checked.h"
#include "shapes/expr/polynomial.h"

namespace rehearse::shapes {
namespace {

// Adds two sorted lists of terms; the sum is sorted too.
Terms merge(const Terms& left, const Terms& right) {
  Terms sum;
  sum.reserve(left.size() + right.size());
  auto a = left.begin();
  auto b = right.begin();
  while (a != left.end() && b != right.end()) {
    const auto order = compare(a->monomial, b->monomial);
    if (order < 0) {
      sum.push_back(*a++);
    } else if (order > 0) {
      sum.push_back(*b++);
    } else {
      const std::int64_t coefficient = checked::add(a->coefficient, b->coefficient);
      if (coefficient != 0) sum.push_back({a->monomial, coefficient});
      ++a;
      ++b;
    }
  }
  sum.insert(sum.end(), a, left.end());
  sum.insert(sum.end(), b, right.end());
  return sum;
}

Terms times(const Terms& terms, const Term& factor) {
  Terms product;
  product.reserve(terms.size());
  for (const Term& term : terms) {
    product.push_back(
        {multiply(term.monomial, factor.monomial), checked::multiply(term.coefficient, factor.coefficient)});
  }
  return product;  // still sorted
}

}  // namespace

Expr operator+(const Expr& left, const Expr& right) {
  if (left.is_number() && right.is_number()) return checked::add(left.number_, right.number_);
  if (left.is_number() && left.number_ == 0) return right;
  if (right.is_number() && right.number_ == 0) return left;
  return ExprParts::make(merge(ExprParts::terms(left), ExprParts::terms(right)));
}

Expr operator-(const Expr& value) { return value * Expr(-1); }

Expr operator-(const Expr& left, const Expr& right) {
  // For numbers, does not compute left + -right, because the least number has no negative.
  if (left.is_number() && right.is_number()) {
    std::int64_t difference = 0;
    if (!__builtin_sub_overflow(left.number_, right.number_, &difference)) return difference;
  }
  return left + -right;
}

Expr operator*(const Expr& left, const Expr& right) {
  if (left.is_number() && right.is_number()) return checked::multiply(left.number_, right.number_);
  if (left.is_number()) return right * left;
  if (right.is_number() && right.number_ == 1) return left;
  const Terms of_right = ExprParts::terms(right);
  Terms product;
  for (const Term& factor : of_right) {
    product = merge(product, times(left.polynomial_->terms, factor));
    if (product.size() > kMaxTerms) break;  // make() will refuse it
  }
  return ExprParts::make(std::move(product));
}

Expr power(const Expr& base, std::int64_t exponent) {
  if (exponent < 0) throw ShapeError("a symbolic size to the power of " + std::to_string(exponent) + " is no integer");
  if (base.is_number()) return checked::power(base.number(), exponent);
  if (exponent == 0) return 1;
  const Terms terms = ExprParts::terms(base);
  if (terms.size() == 1) {
    Term result{terms[0].monomial, checked::power(terms[0].coefficient, exponent)};
    for (Factor& factor : result.monomial) factor.exponent = checked::multiply(factor.exponent, exponent);
    return ExprParts::make(result);
  }
  // The n-th power of a sum of two terms has n + 1 terms.
  if (exponent > static_cast<std::int64_t>(kMaxTerms)) {
    throw ExpressionTooLarge("a symbolic size to the power of " + std::to_string(exponent));
  }
  Expr result = base;
  for (std::int64_t i = 1; i < exponent; ++i) result = result * base;
  return result;
}

std::optional<Expr> divide_exactly(const Expr& dividend, const Expr& divisor) try {
  const Attempt attempt;
  const Terms by = ExprParts::terms(divisor);
  Terms rest = ExprParts::terms(dividend);
  Terms quotient;
  while (!rest.empty()) {
    const Term& lead = rest.front();
    std::optional<Monomial> monomial = divide(lead.monomial, by.front().monomial);
    if (!monomial || checked::mod(lead.coefficient, by.front().coefficient) != 0) return std::nullopt;
    const Term step{*std::move(monomial), checked::floordiv(lead.coefficient, by.front().coefficient)};
    rest = merge(rest, times(by, {step.monomial, checked::negate(step.coefficient)}));
    quotient.push_back(step);  // sorted, because leading terms decrease
    if (quotient.size() > kMaxTerms || rest.size() > kMaxTerms) return std::nullopt;
  }
  return ExprParts::make(std::move(quotient));
} catch (const OverflowError&) {  // the quotient does not exist, or does not fit into 64 bits
  return std::nullopt;
} catch (const ExpressionTooLarge&) {  // each term of the quotient repeats a large factor
  return std::nullopt;
}

}  // namespace rehearse::shapes
