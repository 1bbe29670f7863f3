// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::shapes {

class Condition;
class Expr;
struct Polynomial;

// Limits of one expression; ExpressionTooLarge beyond them.
inline constexpr std::size_t kMaxTerms = 1024;
inline constexpr std::size_t kMaxWeight = 65536;  // factors, also within functions, counted wherever they stand
inline constexpr int kMaxDepth = 200;             // of functions in one another

// The value of a symbol, or none where it is not known.
using ValueOf = std::function<std::optional<std::int64_t>(const std::string& symbol)>;
// What a symbol is replaced by, or none where it stays.
using ExprOf = std::function<std::optional<Expr>(const std::string& symbol)>;

// What an expression is that is neither a number nor a sum nor a product.
enum class AtomKind { Symbol, FloorDiv, Mod, Min, Max, Where };

// An integer-valued expression: a polynomial over symbols and over floor division, remainder, minimum, maximum and
// case distinction of expressions. Immutable, shared when copied, and canonical: what is equal as a polynomial compares
// equal, `(16*s0)//4` is `4*s0`. Division and remainder are Python's: they round towards minus infinity, and the
// remainder has the divisor's sign. Identities assume that a symbolic divisor is not zero.
//
// One order, by content alone: the same in every process. All arithmetic throws OverflowError where a coefficient does
// not fit into 64 bits, DivisionByZero for the number 0 as a divisor, and ExpressionTooLarge.
class Expr {
 public:
  Expr(std::int64_t number = 0) noexcept : number_(number) {}

  // `name`: lower-case letters, then digits. Throws ShapeError for another.
  static Expr symbol(std::string_view name);

  bool is_number() const noexcept { return polynomial_ == nullptr; }
  std::int64_t number() const;               // throws ShapeError when it is none
  bool is_symbol() const noexcept;           // one symbol and nothing else
  const std::string& symbol_name() const;    // throws ShapeError when it is none
  std::vector<std::string> symbols() const;  // each once, in order of name: s2 before s10
  bool has_symbol(std::string_view name) const;

  Expr substitute(const ExprOf& replacement) const;
  // None when a symbol's value is not known.
  std::optional<std::int64_t> evaluate(const ValueOf& value) const;

  // In the notation of torch.export: `2*s0 + 1`, `s0**2`, `(s0//2)`, `Mod(s0, 4)`, `Max(1, u0)`.
  std::string text() const;

  friend Expr operator+(const Expr& left, const Expr& right);
  friend Expr operator-(const Expr& left, const Expr& right);
  friend Expr operator*(const Expr& left, const Expr& right);
  friend Expr operator-(const Expr& value);
  friend bool operator==(const Expr& left, const Expr& right);
  friend std::strong_ordering operator<=>(const Expr& left, const Expr& right);

 private:
  friend struct ExprParts;
  explicit Expr(std::shared_ptr<const Polynomial> polynomial) noexcept : polynomial_(std::move(polynomial)) {}

  std::int64_t number_ = 0;                       // when there is no polynomial
  std::shared_ptr<const Polynomial> polynomial_;  // never a mere number
};

Expr floordiv(const Expr& dividend, const Expr& divisor);
Expr mod(const Expr& dividend, const Expr& divisor);
Expr min(const Expr& left, const Expr& right);
Expr max(const Expr& left, const Expr& right);
Expr power(const Expr& base, std::int64_t exponent);  // exponent >= 0, else ShapeError
// `then` where the condition holds, else `otherwise`.
Expr where(const Condition& condition, const Expr& then, const Expr& otherwise);

// The expression that a text of torch.export's notation stands for; none when it is no integer expression (floats and
// conditions are none) or passes a limit. parse_expr(e.text()) == e.
std::optional<Expr> parse_expr(std::string_view text);

// Whether a symbol's name is that of one that the program itself brings into being: `u0`, and of floats `zuf0`.
bool is_unbacked_name(std::string_view symbol) noexcept;

}  // namespace rehearse::shapes
