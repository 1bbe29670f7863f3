// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/shapes/expr.h>

namespace rehearse::shapes {

// A floating-point number that depends on sizes, such as `2.0/(numel - 1)` in a backward formula. Floats have no
// canonical form, so the object keeps the operations. It computes operations on plain numbers immediately. Immutable;
// copies share data.
class FloatExpr {
 public:
  enum class Kind { Number, OfInt, Add, Sub, Mul, TrueDiv, IntTrueDiv, Pow, Min, Max };

  FloatExpr(double number) : kind_(Kind::Number), number_(number) {}
  FloatExpr(const Expr& integer);                         // torch.export's ToFloat(integer)
  FloatExpr(Kind kind, FloatExpr left, FloatExpr right);  // not for Number and OfInt
  static FloatExpr int_truediv(const Expr& dividend, const Expr& divisor);

  bool is_number() const noexcept { return kind_ == Kind::Number; }
  double number() const noexcept { return number_; }  // only if is_number()
  // An equal integer expression, as far as doubles are exact (up to 2**53). Nothing if the value is not known to be an
  // integer.
  std::optional<Expr> as_int() const;
  // Dividend and divisor if this is the quotient of two integers; else nothing.
  std::optional<std::pair<Expr, Expr>> as_quotient() const;

  std::vector<std::string> symbols() const;
  std::optional<double> evaluate(const ValueOf& value) const;
  // Function names are those of torch.export: `FloatTrueDiv(2.0, (ToFloat(s0) - 1.0))`.
  std::string text() const;

 private:
  struct Parts;

  Kind kind_;
  double number_ = 0;
  Expr integer_;                        // OfInt
  std::shared_ptr<const Parts> parts_;  // for operations
};

}  // namespace rehearse::shapes
