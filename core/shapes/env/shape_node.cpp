// SPDX-License-Identifier: BSD-3-Clause
#include "shapes/env/shape_node.h"

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/shapes/sym_node.h>

namespace rehearse::shapes {

Expr ShapeNode::expr() const {
  if (const Expr* expr = std::get_if<Expr>(&value_)) return env_->simplify(*expr);
  throw ShapeError("a symbolic boolean or float is used as an integer");
}

Condition ShapeNode::condition() const {
  if (const Condition* condition = std::get_if<Condition>(&value_)) return env_->simplify(*condition);
  throw ShapeError("a symbolic number is used as a boolean");
}

FloatExpr ShapeNode::float_expr() const {
  if (const FloatExpr* value = std::get_if<FloatExpr>(&value_)) return *value;
  return FloatExpr(expr());
}

c10::SymNode ShapeNode::make(Value value) const { return c10::make_intrusive<ShapeNode>(env_, std::move(value)); }

const ShapeNode* ShapeNode::own(const c10::SymNode& other) const {
  const auto* node = dynamic_cast<const ShapeNode*>(other.get());
  if (node != nullptr && node->env_ != env_) {
    throw ShapeError("symbolic sizes of two captures meet in one computation");
  }
  return node;
}

Expr ShapeNode::expr_in(const c10::SymNode& other) const {
  if (const ShapeNode* node = own(other)) return node->expr();
  if (const auto number = other->constant_int()) return *number;
  throw ShapeError("the symbolic size '" + other->str() + "' is of another kind than those of this capture");
}

Condition ShapeNode::condition_in(const c10::SymNode& other) const {
  if (const ShapeNode* node = own(other)) return node->condition();
  if (const auto value = other->constant_bool()) return *value;
  throw ShapeError("the symbolic boolean '" + other->str() + "' is of another kind than those of this capture");
}

FloatExpr ShapeNode::float_in(const c10::SymNode& other) const {
  if (const ShapeNode* node = own(other)) return node->float_expr();
  return FloatExpr(expr_in(other));
}

c10::SymNode ShapeNode::clone() { return make(value_); }
c10::SymNode ShapeNode::wrap_int(std::int64_t number) { return make(Expr(number)); }
c10::SymNode ShapeNode::wrap_float(double number) { return make(FloatExpr(number)); }
c10::SymNode ShapeNode::wrap_bool(bool value) { return make(Condition(value)); }

std::string ShapeNode::str() {
  if (is_int()) return expr().text();
  return is_bool() ? condition().text() : float_expr().text();
}

namespace {

const ShapeNode& node_in(c10::SymNodeImpl* impl) {
  if (const auto* node = dynamic_cast<const ShapeNode*>(impl)) return *node;
  throw ShapeError("the symbolic value '" + impl->str() + "' was not made by a ShapeEnv");
}

}  // namespace

Expr expr_of(const c10::SymInt& value) {
  if (const auto number = value.maybe_as_int()) return *number;
  return node_in(value.toSymNodeImplUnowned()).expr();
}

c10::SymInt to_sym_int(const std::shared_ptr<ShapeEnv>& env, const Expr& expr) {
  const Expr simple = env->simplify(expr);
  if (simple.is_number()) return simple.number();
  return c10::SymInt(c10::SymNode(c10::make_intrusive<ShapeNode>(env, simple)));
}

bool guard_size_oblivious_or_false(const c10::SymBool& condition, const char* asker) {
  if (const auto known = condition.maybe_as_bool()) return *known;
  const ShapeNode& node = node_in(condition.toSymNodeImplUnowned());
  return node.env()->guard_size_oblivious_or(node.condition(), false, asker);
}

std::string text_of(const c10::SymInt& value) { return expr_of(value).text(); }

}  // namespace rehearse::shapes
