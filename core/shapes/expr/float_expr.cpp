// SPDX-License-Identifier: BSD-3-Clause
#include "shapes/expr/float_expr.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/shapes/attempt.h>

#include "shapes/expr/polynomial.h"

namespace rehearse::shapes {
namespace {

constexpr double kExactMax = 1LL << 53;

double apply(FloatExpr::Kind kind, double left, double right) {
  switch (kind) {
    case FloatExpr::Kind::Add:
      return left + right;
    case FloatExpr::Kind::Sub:
      return left - right;
    case FloatExpr::Kind::Mul:
      return left * right;
    case FloatExpr::Kind::Pow:
      return std::pow(left, right);
    case FloatExpr::Kind::Min:
      return std::min(left, right);
    case FloatExpr::Kind::Max:
      return std::max(left, right);
    default:
      return left / right;
  }
}

std::string number_text(double number) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  std::string text(buffer.data(), end);
  // A whole number ends in ".0", as in Python. The exponent may appear earlier than in Python: 1e+05.
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

}  // namespace

struct FloatExpr::Parts {
  FloatExpr left;
  FloatExpr right;
};

FloatExpr::FloatExpr(const Expr& integer) : kind_(Kind::OfInt), integer_(integer) {
  if (integer.is_number()) *this = FloatExpr(static_cast<double>(integer.number()));
}

FloatExpr::FloatExpr(Kind kind, FloatExpr left, FloatExpr right) : kind_(kind) {
  if (left.is_number() && right.is_number()) {
    kind_ = Kind::Number;
    number_ = apply(kind, left.number_, right.number_);
  } else {
    parts_ = std::make_shared<const Parts>(Parts{std::move(left), std::move(right)});
  }
}

FloatExpr FloatExpr::int_truediv(const Expr& dividend, const Expr& divisor) {
  return FloatExpr(Kind::IntTrueDiv, FloatExpr(dividend), FloatExpr(divisor));
}

std::optional<Expr> FloatExpr::as_int() const try {
  const Attempt attempt;
  if (kind_ == Kind::OfInt) return integer_;
  if (is_number()) {
    const bool whole = std::abs(number_) <= kExactMax && std::trunc(number_) == number_;
    return whole ? std::optional(Expr(static_cast<std::int64_t>(number_))) : std::nullopt;
  }
  const std::optional<Expr> left = parts_->left.as_int();
  const std::optional<Expr> right = parts_->right.as_int();
  if (!left || !right) return std::nullopt;
  switch (kind_) {
    case Kind::Add:
      return *left + *right;
    case Kind::Sub:
      return *left - *right;
    case Kind::Mul:
      return *left * *right;
    case Kind::Min:
      return min(*left, *right);
    case Kind::Max:
      return max(*left, *right);
    default:
      return std::nullopt;
  }
} catch (const ShapeError&) {  // a limit of integer expressions is exceeded
  return std::nullopt;
}

std::optional<std::pair<Expr, Expr>> FloatExpr::as_quotient() const {
  if (kind_ != Kind::IntTrueDiv && kind_ != Kind::TrueDiv) return std::nullopt;
  const std::optional<Expr> dividend = parts_->left.as_int();
  const std::optional<Expr> divisor = parts_->right.as_int();
  if (!dividend || !divisor) return std::nullopt;
  return std::pair(*dividend, *divisor);
}

std::vector<std::string> FloatExpr::symbols() const {
  if (is_number()) return {};
  if (kind_ == Kind::OfInt) return integer_.symbols();
  std::vector<std::string> names = parts_->left.symbols();
  for (std::string& name : parts_->right.symbols()) names.push_back(std::move(name));
  const auto earlier = [](const auto& left, const auto& right) { return compare_names(left, right) < 0; };
  std::ranges::sort(names, earlier);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::optional<double> FloatExpr::evaluate(const ValueOf& value) const {
  if (is_number()) return number_;
  if (kind_ == Kind::OfInt) {
    const std::optional<std::int64_t> integer = integer_.evaluate(value);
    return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
  }
  const std::optional<double> left = parts_->left.evaluate(value);
  const std::optional<double> right = parts_->right.evaluate(value);
  if (!left || !right) return std::nullopt;
  return apply(kind_, *left, *right);
}

std::string FloatExpr::text() const {
  if (is_number()) return number_text(number_);
  if (kind_ == Kind::OfInt) return "ToFloat(" + integer_.text() + ")";
  const std::string left = parts_->left.text();
  const std::string right = parts_->right.text();
  switch (kind_) {
    case Kind::Add:
      return "(" + left + " + " + right + ")";
    case Kind::Sub:
      return "(" + left + " - " + right + ")";
    case Kind::Mul:
      return left + "*" + right;
    case Kind::Pow:
      return "FloatPow(" + left + ", " + right + ")";
    case Kind::Min:
      return "Min(" + left + ", " + right + ")";
    case Kind::Max:
      return "Max(" + left + ", " + right + ")";
    case Kind::IntTrueDiv:
      break;
    default:
      return "FloatTrueDiv(" + left + ", " + right + ")";
  }
  const auto operand = [](const FloatExpr& part) { return part.as_int().value_or(Expr(0)).text(); };
  return "IntTrueDiv(" + operand(parts_->left) + ", " + operand(parts_->right) + ")";
}

}  // namespace rehearse::shapes
