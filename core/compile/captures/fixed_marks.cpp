// SPDX-License-Identifier: BSD-3-Clause
#include "compile/captures/fixed_marks.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <rehearse/compile/errors.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "compile/arguments/marks.h"

namespace rehearse::compiler {
namespace {

bool is_marked(const SymbolPlace& place, const LeafList& leaves) {
  if (place.dimension < 0) return false;
  const std::vector<Mark> marks = marks_of(*leaves[place.leaf].tensor);
  return std::any_of(marks.begin(), marks.end(), [&](const Mark& mark) {
    return mark.dynamic && mark.dimension == static_cast<std::size_t>(place.dimension);
  });
}

// Of the guards that mention the symbol: the first equality, or else the last guard. Null if none mentions it.
const shapes::Guard* guard_that_fixes(const std::string& symbol, const shapes::ShapeEnv& shapes) {
  const shapes::Guard* last = nullptr;
  for (const shapes::Guard& guard : shapes.guards()) {
    const auto symbols = guard.condition.symbols();
    if (std::find(symbols.begin(), symbols.end(), symbol) == symbols.end()) continue;
    if (guard.condition.kind() == shapes::Condition::Kind::Equal) return &guard;
    last = &guard;
  }
  return last;
}

}  // namespace

void refuse_fixed_marks(const LeafList& leaves, const std::vector<SymbolPlace>& places,
                        const shapes::ShapeEnv& shapes) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!is_marked(places[i], leaves)) continue;
    const shapes::SymbolSource& source = shapes.sources()[i];
    const std::string& symbol = shapes.backed()[source.symbol].name;
    const shapes::Range range = shapes.range(shapes::Expr::symbol(symbol));
    if (range.lower != range.upper) continue;
    const shapes::Guard* const guard = guard_that_fixes(symbol, shapes);
    const std::string line = guard ? guard->where.describe() : "";
    throw CompileError(fmt::format("{}{} was marked dynamic, but the code fixes it: {} ({})",
                                   line.empty() ? "" : line + ": ", source.text,
                                   guard ? guard->condition.text() : fmt::format("{} == {}", symbol, range.lower),
                                   guard ? guard->reason : "what the code states of sizes leaves no other value"));
  }
}

}  // namespace rehearse::compiler
