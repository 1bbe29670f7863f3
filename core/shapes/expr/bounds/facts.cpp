// SPDX-License-Identifier: BSD-3-Clause
#include "shapes/expr/bounds/facts.h"

#include <utility>

#include "shapes/expr/bounds/interval.h"
#include "shapes/expr/checked.h"
#include "shapes/expr/polynomial.h"

namespace rehearse::shapes {
namespace {

// expr == sign*varying + constant; the first coefficient of `varying` is positive.
struct Split {
  Expr varying;
  std::int64_t sign;
  std::int64_t constant;
};

Split split(const Expr& expr) {
  Terms terms = ExprParts::terms(expr);
  Split result{0, 1, 0};
  if (!terms.empty() && terms.back().monomial.empty()) {
    result.constant = terms.back().coefficient;
    terms.pop_back();
  }
  if (!terms.empty() && terms.front().coefficient < 0) result.sign = -1;
  result.varying = ExprParts::make(std::move(terms)) * result.sign;
  return result;
}

Range turned(const Range& range, std::int64_t sign) {
  return sign > 0 ? range : Range{interval::negate(range.upper), interval::negate(range.lower)};
}

// Solves `zero == 0` for a symbol. Solves for a symbol of an input only if the solution is a number or a symbol of an
// input, because messages name symbols of inputs. Solves for an unbacked symbol whatever the solution is.
std::optional<std::pair<std::string, Expr>> solve(const Expr& zero) {
  std::optional<std::pair<std::string, Expr>> best;
  for (const Term& term : ExprParts::terms(zero)) {
    const bool alone = term.monomial.size() == 1 && term.monomial[0].exponent == 1;
    if (!alone || term.monomial[0].atom->kind != AtomKind::Symbol) continue;
    if (term.coefficient != 1 && term.coefficient != -1) continue;
    const std::string& name = term.monomial[0].atom->name;
    const Expr value = (ExprParts::make(term) - zero) * term.coefficient;
    const bool unbacked = is_unbacked_name(name);
    const bool simple = value.is_number() || (value.is_symbol() && !is_unbacked_name(value.symbol_name()));
    if (value.has_symbol(name) || (!unbacked && !simple)) continue;
    // Prefers unbacked symbols to those of inputs. Of two symbols of the same kind, prefers the later name.
    const bool better = !best || std::pair(unbacked, compare_names(best->first, name) < 0) >
                                     std::pair(is_unbacked_name(best->first), false);
    if (better) best.emplace(name, value);
  }
  return best;
}

}  // namespace

Expr Facts::simplify(const Expr& expr) const {
  if (replacements_.empty()) return expr;
  bool any = false;
  for_each_atom(expr, [&](const Atom& atom) { any |= replacements_.contains(atom.name); });
  if (!any) return expr;
  return expr.substitute([this](const std::string& name) -> std::optional<Expr> {
    const auto found = replacements_.find(name);
    return found == replacements_.end() ? std::nullopt : std::optional(found->second);
  });
}

Condition Facts::simplify(const Condition& condition) const {
  if (replacements_.empty() || condition.is_constant()) return condition;
  return condition.substitute([this](const std::string& name) -> std::optional<Expr> {
    const auto found = replacements_.find(name);
    return found == replacements_.end() ? std::nullopt : std::optional(found->second);
  });
}

Range Facts::known(const Expr& expr, Unbacked unbacked) const {
  const Split parts = split(expr);
  const auto found = ranges_.find(parts.varying);
  Range range = found == ranges_.end() ? Range{} : turned(found->second, parts.sign);
  const bool is_unbacked_size = expr.is_symbol() && is_unbacked_name(expr.symbol_name()) && range.lower >= 0;
  if (unbacked == Unbacked::AtLeastTwo && is_unbacked_size) {
    range = intersection(range, {2, Range::kUnboundedAbove});
  }
  return range;
}

Range Facts::range(const Expr& expr) const {
  return range_of(simplify(expr), [this](const Expr& part) { return known(part, Unbacked::AsKnown); });
}

std::optional<bool> Facts::decide(const Condition& condition, Unbacked unbacked) const {
  return decide_simplified(simplify(condition), unbacked);
}

std::optional<bool> Facts::decide_simplified(const Condition& condition, Unbacked unbacked) const {
  if (condition.is_constant()) return condition.is_true();
  if (!true_.empty()) {
    if (true_.contains(condition)) return true;
    if (true_.contains(~condition)) return false;
  }
  if (condition.is_comparison()) {
    return shapes::decide(condition, [this, unbacked](const Expr& part) { return known(part, unbacked); });
  }
  const bool absorbing = condition.kind() == Condition::Kind::Or;
  bool all = true;
  for (const Condition& operand : condition.operands()) {
    const std::optional<bool> decided = decide_simplified(operand, unbacked);
    if (decided == absorbing) return absorbing;
    all = all && decided.has_value();
  }
  return all ? std::optional(!absorbing) : std::nullopt;
}

void Facts::assume(const Condition& condition) {
  const Condition simple = simplify(condition);
  if (simple.is_constant()) return;
  if (simple.kind() == Condition::Kind::And) {
    for (const Condition& operand : simple.operands()) assume(operand);
  } else if (simple.is_comparison()) {
    assume_comparison(simple);
  } else {
    true_.insert(simple);
  }
}

void Facts::assume_comparison(const Condition& condition) {
  if (condition.kind() == Condition::Kind::Equal) return assume_equal(condition.expr());
  const Split parts = split(condition.expr());
  if (condition.kind() == Condition::Kind::AtMostZero) {
    // sign*varying <= -constant
    return narrow(parts.varying, turned({Range::kUnboundedBelow, interval::negate(parts.constant)}, parts.sign));
  }
  true_.insert(condition);
  // If the excluded value is an end of the range, the range shrinks.
  const std::int64_t excluded = interval::negate(parts.constant) * parts.sign;
  const Range range = known(parts.varying, Unbacked::AsKnown);
  if (range.lower == excluded) narrow(parts.varying, {excluded + 1, Range::kUnboundedAbove});
  if (range.upper == excluded) narrow(parts.varying, {Range::kUnboundedBelow, excluded - 1});
}

void Facts::assume_equal(const Expr& zero) {
  if (const auto solved = solve(zero)) return replace(solved->first, solved->second);
  const Split parts = split(zero);
  const std::int64_t value = interval::negate(parts.constant) * parts.sign;
  Range& range = ranges_[parts.varying];
  range = intersection(range, {value, value});
}

void Facts::narrow(const Expr& expr, const Range& range) {
  Range& known = ranges_[expr];
  known = intersection(known, range);
  if (known.lower == known.upper && expr.is_symbol()) replace(expr.symbol_name(), known.lower);
}

void Facts::replace(const std::string& symbol, const Expr& replacement) {
  const auto with = [&](const std::string& name) { return name == symbol ? std::optional(replacement) : std::nullopt; };
  for (auto& [name, value] : replacements_) value = value.substitute(with);
  replacements_.insert_or_assign(symbol, replacement);
  // Facts about the replaced symbol now hold for its replacement.
  for (const auto& [expr, range] : std::exchange(ranges_, {})) {
    if (range.lower != Range::kUnboundedBelow) assume(Condition::ge(expr, range.lower));
    if (range.upper != Range::kUnboundedAbove) assume(Condition::le(expr, range.upper));
  }
  for (const Condition& condition : std::exchange(true_, {})) {
    const Condition simple = condition.substitute(with);
    if (!simple.is_constant()) true_.insert(simple);
  }
}

}  // namespace rehearse::shapes
