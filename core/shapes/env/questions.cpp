// SPDX-License-Identifier: BSD-3-Clause
// How a ShapeEnv answers questions: by what it knows, by hints, or not at all.
#include <algorithm>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "shapes/expr/bounds/facts.h"

namespace rehearse::shapes {

// Adds a guard: the condition has `value`, which is its value for the hints. From now on, this is a known fact.
bool ShapeEnv::record(const Condition& condition, bool value, const std::string& reason) {
  const Condition holds = value ? condition : ~condition;
  guards_.push_back({holds, reason, exec::CallSite::capture(), false});
  facts_->assume(holds);
  return value;
}

void ShapeEnv::take_guard(Guard guard) {
  if (!hint(guard.condition).value_or(false)) {
    throw ShapeError("the guard " + guard.condition.text() + " does not hold for the sizes of this capture");
  }
  facts_->assume(guard.condition);
  guards_.push_back(std::move(guard));
}

void ShapeEnv::refuse(const std::vector<std::string>& symbols, const std::string& asked) const {
  std::string made;
  for (const UnbackedSymbol& symbol : unbacked_) {
    if (std::ranges::find(symbols, symbol.name) == symbols.end()) continue;
    const std::string line = symbol.where.describe();
    if (!made.empty()) made += ", ";
    made += symbol.name + (line.empty() ? "" : " comes from " + line);
  }
  throw DataDependentError(asked, made, exec::CallSite::capture());
}

bool ShapeEnv::guard(const Condition& condition, const std::string& reason) {
  const Condition simple = facts_->simplify(condition);
  if (const auto decided = facts_->decide(simple)) return *decided;
  const std::optional<bool> value = simple.evaluate(hints());
  if (!value) refuse(simple.symbols(), simple.text());
  return record(simple, *value, reason);
}

bool ShapeEnv::guard_or(const Condition& condition, bool fallback, const std::string& reason) {
  const Condition simple = facts_->simplify(condition);
  if (const auto decided = facts_->decide(simple)) return *decided;
  const std::optional<bool> value = simple.evaluate(hints());
  return value ? record(simple, *value, reason) : fallback;
}

bool ShapeEnv::guard_size_oblivious(const Condition& condition, const std::string& reason) {
  const Condition simple = facts_->simplify(condition);
  if (const auto decided = facts_->decide(simple, Facts::Unbacked::AtLeastTwo)) return *decided;
  return guard(simple, reason);
}

bool ShapeEnv::guard_size_oblivious_or(const Condition& condition, bool fallback, const std::string& reason) {
  const Condition simple = facts_->simplify(condition);
  if (const auto decided = facts_->decide(simple, Facts::Unbacked::AtLeastTwo)) return *decided;
  return guard_or(simple, fallback, reason);
}

bool ShapeEnv::expect(const Condition& condition, const std::string& reason) {
  const Condition simple = facts_->simplify(condition);
  if (const auto decided = facts_->decide(simple)) return *decided;
  if (const auto value = simple.evaluate(hints())) return record(simple, *value, reason);
  asserts_.push_back({simple, reason, exec::CallSite::capture(), false});
  facts_->assume(simple);
  return true;
}

std::int64_t ShapeEnv::specialise(const Expr& expr, const std::string& reason) {
  const Expr simple = facts_->simplify(expr);
  if (simple.is_number()) return simple.number();
  const Range range = facts_->range(simple);
  if (range.lower == range.upper) return range.lower;
  const std::optional<std::int64_t> value = simple.evaluate(hints());
  if (!value) refuse(simple.symbols(), simple.text());
  const Condition holds = Condition::eq(simple, *value);
  guards_.push_back({holds, "fixed to " + std::to_string(*value) + ": read as a plain number at " + reason,
                     exec::CallSite::capture(), true});
  facts_->assume(holds);
  return *value;
}

void ShapeEnv::specialise_symbols(const std::vector<std::string>& symbols, const std::string& asked,
                                  const std::string& reason) {
  for (const std::string& symbol : symbols) {
    if (!facts_->simplify(Expr::symbol(symbol)).evaluate(hints())) refuse(symbols, asked);
  }
  for (const std::string& symbol : symbols) specialise(Expr::symbol(symbol), reason);
}

}  // namespace rehearse::shapes
