// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <c10/core/SymNodeImpl.h>

#include <rehearse/shapes/condition.h>
#include <rehearse/shapes/expr.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "shapes/expr/float_expr.h"

namespace rehearse::shapes {

// The node behind a c10::SymInt, SymBool or SymFloat of a capture: a value, and the environment that answers questions
// about it.
class ShapeNode final : public c10::SymNodeImpl {
 public:
  using Value = std::variant<Expr, Condition, FloatExpr>;

  ShapeNode(std::shared_ptr<ShapeEnv> env, Value value) : env_(std::move(env)), value_(std::move(value)) {}

  const std::shared_ptr<ShapeEnv>& env() const noexcept { return env_; }
  // The value, simplified unless it is a float. float_expr() also converts an integer. Throws ShapeError if the value
  // is of another kind.
  Expr expr() const;
  Condition condition() const;
  FloatExpr float_expr() const;

  bool is_int() override { return std::holds_alternative<Expr>(value_); }
  bool is_bool() override { return std::holds_alternative<Condition>(value_); }
  bool is_float() override { return std::holds_alternative<FloatExpr>(value_); }

  // Arithmetic of integers, or of floats if one operand is a float. floordiv(), mod(), int_*() and pow_by_natural()
  // take only integers. floordiv() and mod() round to zero, as C++ does; int_floordiv() rounds down.
  c10::SymNode add(const c10::SymNode& other) override;
  c10::SymNode sub(const c10::SymNode& other) override;
  c10::SymNode mul(const c10::SymNode& other) override;
  c10::SymNode truediv(const c10::SymNode& other) override;
  c10::SymNode float_truediv(const c10::SymNode& other) override;
  c10::SymNode int_truediv(const c10::SymNode& other) override;
  c10::SymNode pow(const c10::SymNode& other) override;
  c10::SymNode float_pow(const c10::SymNode& other) override;
  c10::SymNode pow_by_natural(const c10::SymNode& other) override;
  c10::SymNode floordiv(const c10::SymNode& other) override;
  c10::SymNode int_floordiv(const c10::SymNode& other) override;
  c10::SymNode mod(const c10::SymNode& other) override;
  c10::SymNode neg() override;
  c10::SymNode sym_min(const c10::SymNode& other) override;
  c10::SymNode sym_max(const c10::SymNode& other) override;
  c10::SymNode ceil() override;
  c10::SymNode floor() override;
  c10::SymNode sym_float() override;

  c10::SymNode eq(const c10::SymNode& other) override;
  c10::SymNode ne(const c10::SymNode& other) override;
  c10::SymNode gt(const c10::SymNode& other) override;
  c10::SymNode lt(const c10::SymNode& other) override;
  c10::SymNode le(const c10::SymNode& other) override;
  c10::SymNode ge(const c10::SymNode& other) override;
  c10::SymNode sym_or(const c10::SymNode& other) override;
  c10::SymNode sym_and(const c10::SymNode& other) override;
  c10::SymNode sym_not() override;
  c10::SymNode sym_ite(const c10::SymNode& then, const c10::SymNode& otherwise) override;

  // These ask about their arguments. The node only contributes its environment.
  c10::SymNode is_contiguous(c10::ArrayRef<c10::SymNode> sizes, c10::ArrayRef<c10::SymNode> strides) override;
  c10::SymNode is_channels_last_contiguous_2d(c10::ArrayRef<c10::SymNode> sizes,
                                              c10::ArrayRef<c10::SymNode> strides) override;
  c10::SymNode is_channels_last_contiguous_3d(c10::ArrayRef<c10::SymNode> sizes,
                                              c10::ArrayRef<c10::SymNode> strides) override;
  c10::SymNode is_channels_last_strides_2d(c10::ArrayRef<c10::SymNode> sizes,
                                           c10::ArrayRef<c10::SymNode> strides) override;
  c10::SymNode is_channels_last_strides_3d(c10::ArrayRef<c10::SymNode> sizes,
                                           c10::ArrayRef<c10::SymNode> strides) override;
  c10::SymNode is_non_overlapping_and_dense(c10::ArrayRef<c10::SymNode> sizes,
                                            c10::ArrayRef<c10::SymNode> strides) override;

  c10::SymNode clone() override;
  c10::SymNode wrap_int(std::int64_t number) override;
  c10::SymNode wrap_float(double number) override;
  c10::SymNode wrap_bool(bool value) override;

  // Questions. `file`, `line`: the place in LibTorch that asks.
  std::int64_t guard_int(const char* file, std::int64_t line) override;
  bool guard_bool(const char* file, std::int64_t line) override;
  double guard_float(const char* file, std::int64_t line) override;
  bool guard_size_oblivious(const char* file, std::int64_t line) override;
  bool guard_or_false(const char* file, std::int64_t line) override;
  bool statically_known_true(const char* file, std::int64_t line) override;
  bool guard_or_true(const char* file, std::int64_t line) override;
  bool expect_true(const char* file, std::int64_t line) override;
  std::int64_t int_() override;
  bool bool_() override;
  bool has_hint() override;
  std::optional<std::int64_t> constant_int() override;
  std::optional<bool> constant_bool() override;
  std::optional<std::int64_t> maybe_as_int() override;
  bool is_constant() override;
  bool is_symbolic() override;

  std::string str() override;
  std::string _graph_repr() override { return str(); }

  // The value of an operand: a ShapeNode, or one of c10's other nodes that holds a constant. Throws ShapeError for
  // other nodes, and for nodes of another environment.
  Expr expr_in(const c10::SymNode& other) const;
  Condition condition_in(const c10::SymNode& other) const;
  FloatExpr float_in(const c10::SymNode& other) const;

 private:
  c10::SymNode make(Value value) const;
  const ShapeNode* own(const c10::SymNode& other) const;
  bool with_float(const c10::SymNode& other);
  c10::SymNode compare(const c10::SymNode& other, Condition (*compare_ints)(const Expr&, const Expr&),
                       bool (*compare_floats)(double, double));
  double specialised(const FloatExpr& value, const std::string& reason) const;

  std::shared_ptr<ShapeEnv> env_;
  Value value_;
};

}  // namespace rehearse::shapes
