// SPDX-License-Identifier: BSD-3-Clause
#include "compile/captures/fixed_marks.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include <rehearse/compile/errors.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "compile/arguments/marks.h"

namespace rehearse::compiler {
namespace {

bool is_marked(const SymbolPosition& position, const LeafList& leaves) {
  if (position.dimension < 0) return false;
  const std::vector<Mark> marks = marks_of(*leaves[position.leaf].tensor);
  return std::ranges::any_of(marks, [&](const Mark& mark) {
    return mark.dynamic && mark.dimension == static_cast<std::size_t>(position.dimension);
  });
}

// Returns the guard which says that the symbol has this value. If there is none, several guards together leave no other
// value. Then returns the first equality that mentions the symbol, or else the last guard that mentions it. Null if no
// guard mentions it.
const shapes::Guard* guard_that_fixes(const std::string& symbol, std::int64_t value, const shapes::ShapeEnv& shapes) {
  const shapes::Condition fixed = shapes::Condition::eq(shapes::Expr::symbol(symbol), value);
  const shapes::Guard* equality = nullptr;
  const shapes::Guard* last = nullptr;
  for (const shapes::Guard& guard : shapes.guards()) {
    const auto symbols = guard.condition.symbols();
    if (std::ranges::find(symbols, symbol) == symbols.end()) continue;
    if (guard.condition == fixed) return &guard;
    const bool is_equality = guard.condition.kind() == shapes::Condition::Kind::Equal;
    if (is_equality && equality == nullptr) equality = &guard;
    last = &guard;
  }
  return equality != nullptr ? equality : last;
}

}  // namespace

void refuse_fixed_marks(const LeafList& leaves, const std::vector<SymbolPosition>& positions,
                        const shapes::ShapeEnv& shapes) {
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (!is_marked(positions[i], leaves)) continue;
    const shapes::SymbolSource& source = shapes.sources()[i];
    const std::string& symbol = shapes.backed()[source.symbol].name;
    const shapes::Range range = shapes.range(shapes::Expr::symbol(symbol));
    if (range.lower != range.upper) continue;
    const shapes::Guard* const guard = guard_that_fixes(symbol, range.lower, shapes);
    const std::string line = guard ? guard->where.describe() : "";
    throw CompileError(fmt::format("{}{} was marked dynamic, but the code fixes it: {} ({})",
                                   line.empty() ? "" : line + ": ", source.text,
                                   guard ? guard->condition.text() : fmt::format("{} == {}", symbol, range.lower),
                                   guard ? guard->reason : "the checks of sizes in the code allow no other value"));
  }
}

}  // namespace rehearse::compiler
