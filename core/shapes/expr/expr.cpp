// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/shapes/expr.h>

#include <algorithm>

#include <rehearse/shapes/errors.h>

#include "shapes/expr/checked.h"
#include "shapes/expr/polynomial.h"
#include "shapes/expr/symbol_names.h"

namespace rehearse::shapes {
namespace {

std::optional<std::int64_t> evaluate_atom(const Atom& atom, const ValueOf& value) {
  if (atom.kind == AtomKind::Symbol) return value(atom.name);
  if (atom.kind == AtomKind::Where) return atom.condition->evaluate(value);
  std::optional<std::int64_t> result;
  for (const Expr& operand : atom.operands) {
    const std::optional<std::int64_t> next = operand.evaluate(value);
    if (!next) return std::nullopt;
    if (!result) {
      result = next;
      continue;
    }
    switch (atom.kind) {
      case AtomKind::FloorDiv:
        result = checked::floordiv(*result, *next);
        break;
      case AtomKind::Mod:
        result = checked::mod(*result, *next);
        break;
      case AtomKind::Min:
        result = std::min(*result, *next);
        break;
      default:
        result = std::max(*result, *next);
        break;
    }
  }
  return result;
}

Expr substitute_atom(const AtomPtr& atom, const ExprOf& replacement) {
  if (atom->kind == AtomKind::Symbol) return replacement(atom->name).value_or(ExprParts::make(atom));
  if (atom->kind == AtomKind::Where) return where(atom->condition->substitute(replacement), 1, 0);
  Expr result = atom->operands.front().substitute(replacement);
  for (std::size_t i = 1; i < atom->operands.size(); ++i) {
    const Expr next = atom->operands[i].substitute(replacement);
    switch (atom->kind) {
      case AtomKind::FloorDiv:
        result = floordiv(result, next);
        break;
      case AtomKind::Mod:
        result = mod(result, next);
        break;
      case AtomKind::Min:
        result = min(result, next);
        break;
      default:
        result = max(result, next);
        break;
    }
  }
  return result;
}

}  // namespace

Expr Expr::symbol(std::string_view name) {
  if (!is_integer_symbol(name)) {
    throw ShapeError("'" + std::string(name) + "' is no name of an integer symbol: give letters, then digits, as s0");
  }
  return ExprParts::make(Atom{AtomKind::Symbol, std::string(name), {}, {}});
}

std::int64_t Expr::number() const {
  if (!is_number()) throw ShapeError("'" + text() + "' is no number");
  return number_;
}

bool Expr::is_symbol() const noexcept {
  const Atom* atom = ExprParts::atom(*this);
  return atom != nullptr && atom->kind == AtomKind::Symbol;
}

const std::string& Expr::symbol_name() const {
  if (!is_symbol()) throw ShapeError("'" + text() + "' is no symbol");
  return ExprParts::atom(*this)->name;
}

std::vector<std::string> Expr::symbols() const { return symbols_of(*this); }

bool Expr::has_symbol(std::string_view name) const {
  bool found = false;
  for_each_atom(*this, [&](const Atom& atom) { found |= atom.kind == AtomKind::Symbol && atom.name == name; });
  return found;
}

Expr Expr::substitute(const ExprOf& replacement) const {
  if (is_number()) return *this;
  Expr sum;
  for (const Term& term : polynomial_->terms) {
    Expr product = term.coefficient;
    for (const Factor& factor : term.monomial) {
      product = product * power(substitute_atom(factor.atom, replacement), factor.exponent);
    }
    sum = sum + product;
  }
  return sum;
}

std::optional<std::int64_t> Expr::evaluate(const ValueOf& value) const {
  if (is_number()) return number_;
  std::int64_t sum = 0;
  for (const Term& term : polynomial_->terms) {
    std::int64_t product = term.coefficient;
    for (const Factor& factor : term.monomial) {
      const std::optional<std::int64_t> base = evaluate_atom(*factor.atom, value);
      if (!base) return std::nullopt;
      product = checked::multiply(product, checked::power(*base, factor.exponent));
    }
    sum = checked::add(sum, product);
  }
  return sum;
}

}  // namespace rehearse::shapes
