// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/shapes/expr.h>

namespace rehearse::shapes {

// A condition on expressions: comparisons, and, or, not. Immutable, shared when copied, and canonical like Expr. A
// comparison becomes `expression == 0`, `!= 0` or `<= 0` without common factors, so that `2*s0 > 6` equals `s0 >= 4`. A
// negated comparison is another comparison. Throws the same errors as Expr.
class Condition {
 public:
  enum class Kind { False, True, Equal, NotEqual, AtMostZero, And, Or };

  Condition(bool value) noexcept : kind_(value ? Kind::True : Kind::False) {}

  static Condition eq(const Expr& left, const Expr& right);
  static Condition ne(const Expr& left, const Expr& right);
  static Condition lt(const Expr& left, const Expr& right);
  static Condition le(const Expr& left, const Expr& right);
  static Condition gt(const Expr& left, const Expr& right) { return lt(right, left); }
  static Condition ge(const Expr& left, const Expr& right) { return le(right, left); }

  Kind kind() const noexcept { return kind_; }
  bool is_constant() const noexcept { return kind_ == Kind::True || kind_ == Kind::False; }
  bool is_true() const noexcept { return kind_ == Kind::True; }
  bool is_false() const noexcept { return kind_ == Kind::False; }
  bool is_comparison() const noexcept { return !is_constant() && kind_ != Kind::And && kind_ != Kind::Or; }

  const Expr& expr() const;                        // for a comparison: the side that is compared with 0
  const std::vector<Condition>& operands() const;  // for And and Or: at least two, in order
  std::vector<std::string> symbols() const;        // each once, in order of name

  Condition substitute(const ExprOf& replacement) const;
  // Returns nullopt if the answer depends on a symbol without a known value.
  std::optional<bool> evaluate(const ValueOf& value) const;

  // Such as `s0 == 8`, `u0 <= 128`, `(s1 != 3) & (s0 >= 2)`; `True` or `False` for a constant.
  std::string text() const;

  friend Condition operator&(const Condition& left, const Condition& right);
  friend Condition operator|(const Condition& left, const Condition& right);
  friend Condition operator~(const Condition& condition);
  friend bool operator==(const Condition& left, const Condition& right);
  friend std::strong_ordering operator<=>(const Condition& left, const Condition& right);

 private:
  struct Parts;
  Condition(Kind kind, Expr expr);
  Condition(Kind kind, std::vector<Condition> operands);
  static Condition join(Kind kind, const Condition& left, const Condition& right);

  Kind kind_;
  std::shared_ptr<const Parts> parts_;  // null for constants
};

// Parses the notation that torch.export writes: `u0 >= 0`, `Eq(s0, 8)`, `And(...)`. Returns nullopt if the text is no
// condition, or if it exceeds a limit. parse_condition(c.text()) == c.
std::optional<Condition> parse_condition(std::string_view text);

}  // namespace rehearse::shapes
