// SPDX-License-Identifier: BSD-3-Clause
#include "core/shapes/any_expr.h"

#include <algorithm>
#include <cmath>

#include <rapidcheck.h>

#include <rehearse/shapes/errors.h>

namespace rehearse::shapes {
namespace {

using Value = std::optional<std::int64_t>;

Value floordiv_directly(std::int64_t a, std::int64_t b) {
  if (b == 0) return std::nullopt;
  // The floor of the quotient is exact for the small numbers here.
  return static_cast<std::int64_t>(std::floor(static_cast<long double>(a) / static_cast<long double>(b)));
}

AnyExpr combine(int operation, const AnyExpr& left, const AnyExpr& right) {
  const auto directly = [operation, a = left.directly, b = right.directly](const Assignment& values) -> Value {
    const Value x = a(values);
    const Value y = b(values);
    if (!x || !y) return std::nullopt;
    switch (operation) {
      case 0:
        return *x + *y;
      case 1:
        return *x - *y;
      case 2:
        return *x * *y;
      case 3:
        return floordiv_directly(*x, *y);
      case 4:
        return *y == 0 ? Value() : Value(*x - *y * *floordiv_directly(*x, *y));
      case 5:
        return std::min(*x, *y);
      default:
        return std::max(*x, *y);
    }
  };
  const auto expr = [&] {
    switch (operation) {
      case 0:
        return left.expr + right.expr;
      case 1:
        return left.expr - right.expr;
      case 2:
        return left.expr * right.expr;
      case 3:
        return floordiv(left.expr, right.expr);
      case 4:
        return mod(left.expr, right.expr);
      case 5:
        return min(left.expr, right.expr);
      default:
        return max(left.expr, right.expr);
    }
  };
  return {expr(), directly};
}

AnyExpr any_leaf() {
  static const char* const kNames[] = {"s0", "s1", "s2", "u0"};
  const int choice = *rc::gen::inRange(0, 8);
  if (choice < 4) {
    const std::string name = kNames[choice];
    return {Expr::symbol(name), [name](const Assignment& values) { return Value(values.at(name)); }};
  }
  const std::int64_t number = *rc::gen::inRange(-6, 13);
  return {number, [number](const Assignment&) { return Value(number); }};
}

}  // namespace

AnyExpr any_expr(int depth) {
  const int operation = *rc::gen::inRange(0, 9);
  if (depth == 0) return any_leaf();
  const AnyExpr left = any_expr(depth - 1);
  AnyExpr right = *rc::gen::inRange(0, 2) == 0 ? any_leaf() : any_expr(depth - 1);
  if (operation == 7) {
    const AnyCondition condition = any_condition(0);
    return {where(condition.condition, left.expr, right.expr),
            [c = condition.directly, a = left.directly, b = right.directly](const Assignment& values) -> Value {
              const std::optional<bool> holds = c(values);
              // Computes both branches, as the canonical form does.
              const Value then = a(values);
              const Value otherwise = b(values);
              if (!holds || !then || !otherwise) return std::nullopt;
              return *holds ? then : otherwise;
            }};
  }
  // A division by the number 0 throws at once. expr_test covers that.
  const bool divides = operation == 3 || operation == 4;
  if (divides && right.expr.is_number() && right.expr.number() == 0) right = any_leaf();
  if (divides && right.expr.is_number() && right.expr.number() == 0) return left;
  return combine(operation, left, right);
}

AnyCondition any_condition(int depth) {
  if (depth > 0) {
    const AnyCondition left = any_condition(depth - 1);
    const AnyCondition right = any_condition(depth - 1);
    const int kind = *rc::gen::inRange(0, 3);
    const Condition condition = kind == 0   ? left.condition & right.condition
                                : kind == 1 ? left.condition | right.condition
                                            : ~left.condition;
    return {condition, [kind, a = left.directly, b = right.directly](const Assignment& values) -> std::optional<bool> {
              const auto x = a(values);
              const auto y = b(values);
              if (!x || !y) return std::nullopt;
              return kind == 0 ? *x && *y : kind == 1 ? *x || *y : !*x;
            }};
  }
  const AnyExpr left = any_expr(2);
  const AnyExpr right = any_expr(1);
  const int kind = *rc::gen::inRange(0, 6);
  const auto condition = [&] {
    switch (kind) {
      case 0:
        return Condition::eq(left.expr, right.expr);
      case 1:
        return Condition::ne(left.expr, right.expr);
      case 2:
        return Condition::lt(left.expr, right.expr);
      case 3:
        return Condition::le(left.expr, right.expr);
      case 4:
        return Condition::gt(left.expr, right.expr);
      default:
        return Condition::ge(left.expr, right.expr);
    }
  };
  return {condition(), [kind, a = left.directly, b = right.directly](const Assignment& values) -> std::optional<bool> {
            const auto x = a(values);
            const auto y = b(values);
            if (!x || !y) return std::nullopt;
            const bool results[] = {*x == *y, *x != *y, *x<*y, *x <= *y, *x> * y, *x >= *y};
            return results[kind];
          }};
}

Assignment any_assignment(std::int64_t least, std::int64_t greatest) {
  Assignment values;
  for (const char* name : {"s0", "s1", "s2", "u0"}) values[name] = *rc::gen::inRange(least, greatest + 1);
  return values;
}

ValueOf values_in(const Assignment& assignment) {
  return [&assignment](const std::string& name) -> std::optional<std::int64_t> {
    const auto found = assignment.find(name);
    return found == assignment.end() ? std::nullopt : std::optional(found->second);
  };
}

bool holds_for_any(const char* name, const std::function<void()>& property) {
  return rc::check(name, [&property] {
    try {
      property();
    } catch (const ExpressionTooLarge& error) {
      RC_DISCARD(error.what());
    }
  });
}

}  // namespace rehearse::shapes
