// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/shapes/lower.h>

#include <rehearse/shapes/errors.h>

#include "shapes/expr/polynomial.h"

namespace rehearse::shapes {

std::vector<TermView> terms_of(const Expr& expr) {
  std::vector<TermView> views;
  for (const Term& term : ExprParts::terms(expr)) {
    TermView view{term.coefficient, {}};
    for (const Factor& factor : term.monomial) view.factors.push_back({ExprParts::make(factor.atom), factor.exponent});
    views.push_back(std::move(view));
  }
  return views;
}

AtomView atom_of(const Expr& expr) {
  const Atom* atom = ExprParts::atom(expr);
  if (atom == nullptr) throw ShapeError("'" + expr.text() + "' is neither a symbol nor a function");
  return {atom->kind, atom->operands, atom->condition};
}

}  // namespace rehearse::shapes
