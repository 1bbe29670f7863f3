// SPDX-License-Identifier: BSD-3-Clause
#include "shapes/expr/polynomial.h"

#include <algorithm>

#include <rehearse/shapes/errors.h>

#include "shapes/expr/checked.h"

namespace rehearse::shapes {
namespace {

void require_size(const Polynomial& polynomial) {
  const auto refuse = [](const std::string& what) { throw ExpressionTooLarge("a symbolic size has " + what); };
  if (polynomial.terms.size() > kMaxTerms) refuse("more than " + std::to_string(kMaxTerms) + " terms");
  if (polynomial.weight > kMaxWeight) refuse("more than " + std::to_string(kMaxWeight) + " factors");
  if (polynomial.depth > kMaxDepth) refuse("divisions, minima or maxima deeper than " + std::to_string(kMaxDepth));
}

template <class Visit>
void for_each_factor(const Expr& expr, const Visit& visit) {
  const Polynomial* polynomial = ExprParts::polynomial(expr);
  if (polynomial == nullptr) return;
  for (const Term& term : polynomial->terms) {
    for (const Factor& factor : term.monomial) visit(*factor.atom);
  }
}

template <class Visit>
void for_each_factor(const Condition& condition, const Visit& visit) {
  if (condition.is_comparison()) return for_each_factor(condition.expr(), visit);
  if (condition.is_constant()) return;
  for (const Condition& operand : condition.operands()) for_each_factor(operand, visit);
}

}  // namespace

Terms ExprParts::terms(const Expr& expr) {
  if (expr.polynomial_ != nullptr) return expr.polynomial_->terms;
  return expr.number_ == 0 ? Terms{} : Terms{{{}, expr.number_}};
}

Expr ExprParts::make(Terms terms) {
  if (terms.empty()) return 0;
  if (terms.size() == 1 && terms[0].monomial.empty()) return terms[0].coefficient;
  auto polynomial = std::make_shared<Polynomial>();
  for (const Term& term : terms) {
    for (const Factor& factor : term.monomial) {
      polynomial->depth = std::max(polynomial->depth, factor.atom->depth);
      polynomial->weight += factor.atom->weight;
    }
  }
  polynomial->terms = std::move(terms);
  require_size(*polynomial);
  return Expr(std::shared_ptr<const Polynomial>(std::move(polynomial)));
}

Expr ExprParts::make(Atom atom) {
  const auto add = [&atom](const Atom& inner) {
    atom.depth = std::max(atom.depth, inner.depth);
    atom.weight += inner.weight;
  };
  for (const Expr& operand : atom.operands) for_each_factor(operand, add);
  if (atom.condition) for_each_factor(*atom.condition, add);
  if (atom.kind != AtomKind::Symbol) ++atom.depth;
  return make(std::make_shared<const Atom>(std::move(atom)));
}

Expr ExprParts::make(const AtomPtr& atom) { return make(Term{{{atom, 1}}, 1}); }

Expr ExprParts::make(const Term& term) { return make(Terms{term}); }

const Atom* ExprParts::atom(const Expr& expr) noexcept {
  if (expr.polynomial_ == nullptr || expr.polynomial_->terms.size() != 1) return nullptr;
  const Term& term = expr.polynomial_->terms[0];
  const bool alone = term.coefficient == 1 && term.monomial.size() == 1 && term.monomial[0].exponent == 1;
  return alone ? term.monomial[0].atom.get() : nullptr;
}

Monomial multiply(const Monomial& left, const Monomial& right) {
  Monomial product;
  product.reserve(left.size() + right.size());
  auto a = left.begin();
  auto b = right.begin();
  while (a != left.end() && b != right.end()) {
    const auto order = compare(*a->atom, *b->atom);
    if (order < 0) {
      product.push_back(*a++);
    } else if (order > 0) {
      product.push_back(*b++);
    } else {
      product.push_back({a->atom, checked::add(a->exponent, b->exponent)});
      ++a;
      ++b;
    }
  }
  product.insert(product.end(), a, left.end());
  product.insert(product.end(), b, right.end());
  return product;
}

std::optional<Monomial> divide(const Monomial& dividend, const Monomial& divisor) {
  Monomial quotient;
  auto b = divisor.begin();
  for (const Factor& factor : dividend) {
    if (b == divisor.end() || compare(*factor.atom, *b->atom) != 0) {
      quotient.push_back(factor);
      continue;
    }
    if (factor.exponent < b->exponent) return std::nullopt;
    if (factor.exponent > b->exponent) quotient.push_back({factor.atom, factor.exponent - b->exponent});
    ++b;
  }
  return b == divisor.end() ? std::optional(std::move(quotient)) : std::nullopt;
}

Monomial common_factor(const Monomial& left, const Monomial& right) {
  Monomial common;
  auto b = right.begin();
  for (const Factor& factor : left) {
    while (b != right.end() && compare(*b->atom, *factor.atom) < 0) ++b;
    if (b != right.end() && compare(*b->atom, *factor.atom) == 0) {
      common.push_back({factor.atom, std::min(factor.exponent, b->exponent)});
    }
  }
  return common;
}

}  // namespace rehearse::shapes
