// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <functional>

#include <rehearse/shapes/errors.h>

#include "shapes/env/shape_node.h"

namespace rehearse::shapes {

using c10::SymNode;
using Kind = FloatExpr::Kind;

namespace {

// Chooses by the sign of `value`. Fixes the sign by a guard if it depends on sizes of inputs. If it depends on data,
// the result contains both values.
Expr by_sign(ShapeEnv& env, const Expr& value, const Expr& if_negative, const Expr& otherwise) {
  const Condition is_negative = Condition::lt(value, 0);
  if (const auto decided = env.decide(is_negative)) return *decided ? if_negative : otherwise;
  if (!env.hint(is_negative)) return where(is_negative, if_negative, otherwise);
  return env.guard(is_negative, "the sign in a division") ? if_negative : otherwise;
}

}  // namespace

bool ShapeNode::with_float(const SymNode& other) { return is_float() || other->is_float(); }

SymNode ShapeNode::add(const SymNode& other) {
  if (with_float(other)) return make(FloatExpr(Kind::Add, float_expr(), float_in(other)));
  return make(expr() + expr_in(other));
}

SymNode ShapeNode::sub(const SymNode& other) {
  if (with_float(other)) return make(FloatExpr(Kind::Sub, float_expr(), float_in(other)));
  return make(expr() - expr_in(other));
}

SymNode ShapeNode::mul(const SymNode& other) {
  if (with_float(other)) return make(FloatExpr(Kind::Mul, float_expr(), float_in(other)));
  return make(expr() * expr_in(other));
}

SymNode ShapeNode::truediv(const SymNode& other) {
  return with_float(other) ? float_truediv(other) : int_truediv(other);
}

SymNode ShapeNode::float_truediv(const SymNode& other) {
  return make(FloatExpr(Kind::TrueDiv, float_expr(), float_in(other)));
}

SymNode ShapeNode::int_truediv(const SymNode& other) { return make(FloatExpr::int_truediv(expr(), expr_in(other))); }

SymNode ShapeNode::pow(const SymNode& other) { return with_float(other) ? float_pow(other) : pow_by_natural(other); }

SymNode ShapeNode::float_pow(const SymNode& other) { return make(FloatExpr(Kind::Pow, float_expr(), float_in(other))); }

SymNode ShapeNode::pow_by_natural(const SymNode& other) {
  const std::int64_t exponent = env_->specialise(expr_in(other), "an exponent");
  return make(power(expr(), exponent));
}

// c10::SymInt's / and % call floordiv() and mod(). For plain numbers both round to zero, as in C++. Symbols must do the
// same, because eager mode computes with plain numbers.
SymNode ShapeNode::floordiv(const SymNode& other) {
  const Expr given = expr_in(other);
  const Expr dividend = by_sign(*env_, given, -expr(), expr());
  const Expr divisor = by_sign(*env_, given, -given, given);
  return make(by_sign(*env_, dividend, -shapes::floordiv(-dividend, divisor), shapes::floordiv(dividend, divisor)));
}

// Rounds down, as Python does.
SymNode ShapeNode::int_floordiv(const SymNode& other) { return make(shapes::floordiv(expr(), expr_in(other))); }

SymNode ShapeNode::mod(const SymNode& other) {
  const Expr dividend = expr();
  const Expr given = expr_in(other);
  const Expr divisor = by_sign(*env_, given, -given, given);
  return make(by_sign(*env_, dividend, -shapes::mod(-dividend, divisor), shapes::mod(dividend, divisor)));
}

SymNode ShapeNode::neg() {
  return is_float() ? make(FloatExpr(Kind::Mul, FloatExpr(-1.0), float_expr())) : make(-expr());
}

SymNode ShapeNode::sym_min(const SymNode& other) {
  if (with_float(other)) return make(FloatExpr(Kind::Min, float_expr(), float_in(other)));
  const Expr left = expr();
  const Expr right = expr_in(other);
  if (const auto less = env_->decide(Condition::le(left, right))) return make(*less ? left : right);
  return make(min(left, right));
}

SymNode ShapeNode::sym_max(const SymNode& other) {
  if (with_float(other)) return make(FloatExpr(Kind::Max, float_expr(), float_in(other)));
  const Expr left = expr();
  const Expr right = expr_in(other);
  if (const auto more = env_->decide(Condition::ge(left, right))) return make(*more ? left : right);
  return make(max(left, right));
}

SymNode ShapeNode::ceil() {
  if (is_int()) return clone();
  const FloatExpr value = float_expr();
  if (const auto integer = value.as_int()) return make(*integer);
  if (const auto quotient = value.as_quotient()) return make(-shapes::floordiv(-quotient->first, quotient->second));
  return make(Expr(static_cast<std::int64_t>(std::ceil(specialised(value, "ceil() of a symbolic float")))));
}

SymNode ShapeNode::floor() {
  if (is_int()) return clone();
  const FloatExpr value = float_expr();
  if (const auto integer = value.as_int()) return make(*integer);
  if (const auto quotient = value.as_quotient()) return make(shapes::floordiv(quotient->first, quotient->second));
  return make(Expr(static_cast<std::int64_t>(std::floor(specialised(value, "floor() of a symbolic float")))));
}

SymNode ShapeNode::sym_float() { return make(float_expr()); }

// Compares floats as integers if both are known to be whole numbers. Otherwise fixes their symbols and compares the
// values.
SymNode ShapeNode::compare(const SymNode& other, Condition (*compare_ints)(const Expr&, const Expr&),
                           bool (*compare_floats)(double, double)) {
  if (!with_float(other)) return make(compare_ints(expr(), expr_in(other)));
  const FloatExpr left = float_expr();
  const FloatExpr right = float_in(other);
  const auto left_int = left.as_int();
  const auto right_int = right.as_int();
  if (left_int && right_int) return make(compare_ints(env_->simplify(*left_int), env_->simplify(*right_int)));
  const std::string reason = "a comparison of symbolic floats";
  return make(Condition(compare_floats(specialised(left, reason), specialised(right, reason))));
}

SymNode ShapeNode::eq(const SymNode& other) {
  return compare(other, Condition::eq, [](double a, double b) { return a == b; });
}
SymNode ShapeNode::ne(const SymNode& other) {
  return compare(other, Condition::ne, [](double a, double b) { return a != b; });
}
SymNode ShapeNode::gt(const SymNode& other) {
  return compare(other, Condition::gt, [](double a, double b) { return a > b; });
}
SymNode ShapeNode::lt(const SymNode& other) {
  return compare(other, Condition::lt, [](double a, double b) { return a < b; });
}
SymNode ShapeNode::le(const SymNode& other) {
  return compare(other, Condition::le, [](double a, double b) { return a <= b; });
}
SymNode ShapeNode::ge(const SymNode& other) {
  return compare(other, Condition::ge, [](double a, double b) { return a >= b; });
}

SymNode ShapeNode::sym_or(const SymNode& other) { return make(condition() | condition_in(other)); }
SymNode ShapeNode::sym_and(const SymNode& other) { return make(condition() & condition_in(other)); }
SymNode ShapeNode::sym_not() { return make(~condition()); }

SymNode ShapeNode::sym_ite(const SymNode& then, const SymNode& otherwise) {
  const Condition holds = condition();
  if (const auto decided = env_->decide(holds)) return *decided ? then : otherwise;
  if (then->is_int() && otherwise->is_int()) return make(where(holds, expr_in(then), expr_in(otherwise)));
  if (then->is_bool() && otherwise->is_bool()) {
    return make((holds & condition_in(then)) | (~holds & condition_in(otherwise)));
  }
  return env_->guard(holds, "a choice between symbolic floats") ? then : otherwise;
}

}  // namespace rehearse::shapes
