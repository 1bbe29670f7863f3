// SPDX-License-Identifier: BSD-3-Clause
// Minimum, maximum and Where.
#include <algorithm>

#include "shapes/expr/polynomial.h"

namespace rehearse::shapes {
namespace {

void add_operands(const Expr& expr, AtomKind kind, std::vector<Expr>& operands) {
  const Atom* atom = ExprParts::atom(expr);
  if (atom != nullptr && atom->kind == kind) {
    operands.insert(operands.end(), atom->operands.begin(), atom->operands.end());
  } else {
    operands.push_back(expr);
  }
}

// Adds the candidate to `kept`. If it differs from a kept expression only by a number, keeps the more extreme of the
// two.
void keep_extreme(std::vector<Expr>& kept, const Expr& candidate, AtomKind kind) {
  for (Expr& other : kept) {
    const Expr difference = candidate - other;
    if (!difference.is_number()) continue;
    if ((kind == AtomKind::Max) == (difference.number() > 0)) other = candidate;
    return;
  }
  kept.push_back(candidate);
}

Expr extreme(const Expr& left, const Expr& right, AtomKind kind) {
  std::vector<Expr> operands;
  add_operands(left, kind, operands);
  add_operands(right, kind, operands);
  std::vector<Expr> kept;
  for (const Expr& operand : operands) keep_extreme(kept, operand, kind);
  if (kept.size() == 1) return kept.front();
  std::ranges::sort(kept);
  return ExprParts::make(Atom{kind, {}, std::move(kept), {}});
}

}  // namespace

Expr min(const Expr& left, const Expr& right) { return extreme(left, right, AtomKind::Min); }
Expr max(const Expr& left, const Expr& right) { return extreme(left, right, AtomKind::Max); }

Expr where(const Condition& condition, const Expr& then, const Expr& otherwise) {
  if (condition.is_constant()) return condition.is_true() ? then : otherwise;
  return otherwise + (then - otherwise) * ExprParts::make(Atom{AtomKind::Where, {}, {}, condition});
}

}  // namespace rehearse::shapes
