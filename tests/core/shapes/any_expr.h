// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <rehearse/shapes/condition.h>
#include <rehearse/shapes/expr.h>

namespace rehearse::shapes {

inline const Expr s0 = Expr::symbol("s0");
inline const Expr s1 = Expr::symbol("s1");
inline const Expr u0 = Expr::symbol("u0");

using Assignment = std::map<std::string, std::int64_t>;

// An expression, and a function that computes its value step by step as Python would, without simplification. The
// function returns nothing if a divisor is zero.
struct AnyExpr {
  Expr expr;
  std::function<std::optional<std::int64_t>(const Assignment&)> directly;
};

struct AnyCondition {
  Condition condition;
  std::function<std::optional<bool>(const Assignment&)> directly;
};

// Random expressions over s0, s1, s2 and u0, from RapidCheck. Numbers are small, so that nothing overflows.
AnyExpr any_expr(int depth);
AnyCondition any_condition(int depth);
Assignment any_assignment(std::int64_t least, std::int64_t greatest);

ValueOf values_in(const Assignment& assignment);

// Returns whether RapidCheck finds no values for which `property` fails. RapidCheck draws other values if an expression
// grows too large (ExpressionTooLarge).
bool holds_for_any(const char* name, const std::function<void()>& property);

}  // namespace rehearse::shapes
