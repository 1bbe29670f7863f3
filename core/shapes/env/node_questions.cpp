// SPDX-License-Identifier: BSD-3-Clause
#include <string_view>

#include <c10/util/Exception.h>

#include <rehearse/shapes/errors.h>

#include "shapes/env/shape_node.h"

namespace rehearse::shapes {
namespace {

// Names the line of LibTorch that asks, without the folders of its build. Line 0: `file` is a function's name.
std::string asker(const char* file, std::int64_t line) {
  const std::string_view path(file);
  const std::string name(path.substr(path.rfind('/') + 1));
  return line == 0 ? name : name + ":" + std::to_string(line);
}

}  // namespace

std::int64_t ShapeNode::guard_int(const char* file, std::int64_t line) {
  const Expr value = expr();
  // Since LibTorch 2.14, c10::TensorImpl::sizes() of symbolic sizes asks here. Until then it threw, and whoever
  // inferred shapes with a kernel for plain sizes then inferred them in another way. Specialising would hide that.
  TORCH_CHECK(value.is_number() || !std::string_view(file).ends_with("SymbolicShapeMeta.cpp"),
              "Cannot call sizes() on tensor with symbolic sizes/strides");
  return value.is_number() ? value.number() : env_->specialise(value, asker(file, line));
}

bool ShapeNode::guard_bool(const char* file, std::int64_t line) { return env_->guard(condition(), asker(file, line)); }

double ShapeNode::specialised(const FloatExpr& value, const std::string& reason) const {
  if (value.is_number()) return value.number();
  env_->specialise_symbols(value.symbols(), value.text(), reason);
  return value.evaluate([this](const std::string& name) { return env_->hint(Expr::symbol(name)); }).value();
}

double ShapeNode::guard_float(const char* file, std::int64_t line) {
  return specialised(float_expr(), asker(file, line));
}

bool ShapeNode::guard_size_oblivious(const char* file, std::int64_t line) {
  return env_->guard_size_oblivious(condition(), asker(file, line));
}

bool ShapeNode::guard_or_false(const char* file, std::int64_t line) {
  return env_->guard_or(condition(), false, asker(file, line));
}

bool ShapeNode::guard_or_true(const char* file, std::int64_t line) {
  return env_->guard_or(condition(), true, asker(file, line));
}

bool ShapeNode::statically_known_true(const char*, std::int64_t) { return env_->decide(condition()) == true; }

bool ShapeNode::expect_true(const char* file, std::int64_t line) {
  return env_->expect(condition(), asker(file, line));
}

std::int64_t ShapeNode::int_() { return guard_int("int_", 0); }
bool ShapeNode::bool_() { return guard_bool("bool_", 0); }

bool ShapeNode::has_hint() {
  if (is_int()) return env_->hint(expr()).has_value();
  if (is_bool()) return env_->hint(condition()).has_value();
  return float_expr().evaluate([this](const std::string& name) { return env_->hint(Expr::symbol(name)); }).has_value();
}

std::optional<std::int64_t> ShapeNode::constant_int() { return maybe_as_int(); }

std::optional<std::int64_t> ShapeNode::maybe_as_int() {
  if (!is_int()) return std::nullopt;
  const Expr value = expr();
  return value.is_number() ? std::optional(value.number()) : std::nullopt;
}

std::optional<bool> ShapeNode::constant_bool() {
  if (!is_bool()) return std::nullopt;
  const Condition& own = std::get<Condition>(value_);
  return own.is_constant() ? own.is_true() : env_->decide(own);
}

bool ShapeNode::is_constant() {
  if (is_int()) return maybe_as_int().has_value();
  return is_bool() ? constant_bool().has_value() : float_expr().is_number();
}

bool ShapeNode::is_symbolic() { return !is_constant(); }

}  // namespace rehearse::shapes
