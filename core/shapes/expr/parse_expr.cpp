// SPDX-License-Identifier: BSD-3-Clause
// Parses the notation of torch.export and sympy. Operators by increasing precedence: `|`; `&`; comparisons; `+` and
// `-`; `*`, `//` and `%`; the signs `-` and `~`; `**`.
#include <charconv>
#include <string>
#include <variant>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/shapes/attempt.h>

#include "shapes/expr/polynomial.h"
#include "shapes/expr/symbol_names.h"

namespace rehearse::shapes {
namespace {

using Value = std::variant<Expr, Condition>;

struct NotAnExpression {};

const Expr& expr_in(const Value& value) {
  if (const Expr* expr = std::get_if<Expr>(&value)) return *expr;
  throw NotAnExpression();
}

const Condition& condition_in(const Value& value) {
  if (const Condition* condition = std::get_if<Condition>(&value)) return *condition;
  throw NotAnExpression();
}

Value call(std::string_view name, const std::vector<Value>& items) {
  const auto fold = [&items]<class Get, class Join>(Get get, Join join) -> Value {
    if (items.empty()) throw NotAnExpression();
    auto result = get(items.front());
    for (std::size_t i = 1; i < items.size(); ++i) result = join(result, get(items[i]));
    return result;
  };
  if (name == "Min") return fold(expr_in, min);
  if (name == "Max") return fold(expr_in, max);
  if (name == "And") return fold(condition_in, [](const Condition& a, const Condition& b) { return a & b; });
  if (name == "Or") return fold(condition_in, [](const Condition& a, const Condition& b) { return a | b; });
  if (name == "Not" && items.size() == 1) return ~condition_in(items[0]);
  if (name == "Where" && items.size() == 3) return where(condition_in(items[0]), expr_in(items[1]), expr_in(items[2]));
  if (items.size() != 2) throw NotAnExpression();
  const Expr& left = expr_in(items[0]);
  const Expr& right = expr_in(items[1]);
  if (name == "FloorDiv") return floordiv(left, right);
  if (name == "Mod" || name == "PythonMod") return mod(left, right);
  if (name == "Eq") return Condition::eq(left, right);
  if (name == "Ne") return Condition::ne(left, right);
  throw NotAnExpression();
}

class ExprParser {
 public:
  explicit ExprParser(std::string_view text) : rest_(text) {}

  Value whole() {
    Value value = alternatives();
    skip_spaces();
    if (!rest_.empty()) throw NotAnExpression();
    return value;
  }

 private:
  Value alternatives() {
    Value value = conjunction();
    while (take("|")) value = condition_in(value) | condition_in(conjunction());
    return value;
  }

  Value conjunction() {
    Value value = comparison();
    while (take("&")) value = condition_in(value) & condition_in(comparison());
    return value;
  }

  Value comparison() {
    Value value = sum();
    if (take("==")) return Condition::eq(expr_in(value), expr_in(sum()));
    if (take("!=")) return Condition::ne(expr_in(value), expr_in(sum()));
    if (take("<=")) return Condition::le(expr_in(value), expr_in(sum()));
    if (take(">=")) return Condition::ge(expr_in(value), expr_in(sum()));
    if (take("<")) return Condition::lt(expr_in(value), expr_in(sum()));
    if (take(">")) return Condition::gt(expr_in(value), expr_in(sum()));
    return value;
  }

  Value sum() {
    Value value = product();
    for (;;) {
      if (take("+")) {
        value = expr_in(value) + expr_in(product());
      } else if (take("-")) {
        value = expr_in(value) - expr_in(product());
      } else {
        return value;
      }
    }
  }

  Value product() {
    Value value = signed_value();
    for (;;) {
      if (take("//")) {
        value = floordiv(expr_in(value), expr_in(signed_value()));
      } else if (take("%")) {
        value = mod(expr_in(value), expr_in(signed_value()));
      } else if (take("*")) {
        value = expr_in(value) * expr_in(signed_value());
      } else {
        return value;
      }
    }
  }

  Value signed_value() {
    const Depth depth(depth_);
    if (take("~")) return ~condition_in(signed_value());
    if (!take("-")) return power_of();
    skip_spaces();
    if (rest_.empty() || !is_digit(rest_.front())) return -expr_in(signed_value());
    // Reads the sign with the number, because the least number has no positive form.
    const Expr negative = number_in("-" + std::string(take_word()));
    return take("**") ? -power(-negative, exponent()) : negative;
  }

  Value power_of() {
    const Value base = primary();
    return take("**") ? power(expr_in(base), exponent()) : base;
  }

  std::int64_t exponent() {
    const Expr value = expr_in(primary());
    if (!value.is_number() || value.number() < 0) throw NotAnExpression();
    return value.number();
  }

  Value primary() {
    const Depth depth(depth_);
    if (take("(")) {
      Value value = alternatives();
      require(")");
      return value;
    }
    const std::string_view word = take_word();
    if (word.empty()) throw NotAnExpression();
    if (is_digit(word.front())) return number_in(word);
    if (word == "True" || word == "False") return Condition(word == "True");
    if (take("(")) return call(word, arguments());
    if (!is_integer_symbol(word)) throw NotAnExpression();
    return Expr::symbol(word);
  }

  std::vector<Value> arguments() {
    std::vector<Value> items;
    for (bool first = true; !take(")"); first = false) {
      if (!first) require(",");
      items.push_back(alternatives());
    }
    return items;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  static Expr number_in(std::string_view digits) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) throw NotAnExpression();
    return value;
  }

  std::string_view take_word() {
    skip_spaces();
    const auto in_word = [](char c) {
      return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    std::size_t end = 0;
    while (end < rest_.size() && in_word(rest_[end])) ++end;
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }

  bool take(std::string_view sign) {
    skip_spaces();
    if (!rest_.starts_with(sign)) return false;
    // Does not take the first character of `**` for `*`.
    if (sign == "*" && rest_.starts_with("**")) return false;
    rest_.remove_prefix(sign.size());
    return true;
  }

  void require(std::string_view sign) {
    if (!take(sign)) throw NotAnExpression();
  }

  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  // Limits nested parentheses and signs, because the parser is recursive.
  struct Depth {
    explicit Depth(int& depth) : depth(depth) {
      if (++depth > 4 * kMaxDepth) throw NotAnExpression();
    }
    ~Depth() { --depth; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    int& depth;
  };

  std::string_view rest_;
  int depth_ = 0;
};

std::optional<Value> parse_value(std::string_view text) try {
  const Attempt attempt;
  return ExprParser(text).whole();
} catch (const NotAnExpression&) {
  return std::nullopt;
} catch (const ShapeError&) {
  return std::nullopt;
}

}  // namespace

std::optional<Expr> parse_expr(std::string_view text) {
  const std::optional<Value> value = parse_value(text);
  if (!value || !std::holds_alternative<Expr>(*value)) return std::nullopt;
  return std::get<Expr>(*value);
}

std::optional<Condition> parse_condition(std::string_view text) {
  const std::optional<Value> value = parse_value(text);
  if (!value || !std::holds_alternative<Condition>(*value)) return std::nullopt;
  return std::get<Condition>(*value);
}

}  // namespace rehearse::shapes
