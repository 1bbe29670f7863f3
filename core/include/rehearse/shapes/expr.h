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

// Limits of one expression. Beyond them functions throw ExpressionTooLarge.
inline constexpr std::size_t kMaxTerms = 1024;
// Counts all factors, including those inside functions, at each occurrence.
inline constexpr std::size_t kMaxWeight = 65536;
inline constexpr int kMaxDepth = 200;  // nesting of functions

// Returns the value of a symbol, or nullopt if it is unknown.
using ValueOf = std::function<std::optional<std::int64_t>(const std::string& symbol)>;
// Returns the replacement of a symbol, or nullopt to keep the symbol.
using ExprOf = std::function<std::optional<Expr>(const std::string& symbol)>;

// The kinds of expressions that are not numbers, sums or products.
enum class AtomKind { Symbol, FloorDiv, Mod, Min, Max, Where };

// An integer-valued expression: a polynomial over symbols and over floor divisions, remainders, minima, maxima and case
// distinctions of expressions. Immutable, shared when copied, and canonical: equal polynomials compare equal, and
// `(16*s0)//4` is `4*s0`. Division and remainder are Python's: division rounds towards minus infinity, and the
// remainder has the divisor's sign. Simplifications assume that a symbolic divisor is not zero.
//
// Comparisons depend on the content alone, so the order of expressions is the same in every process. All arithmetic
// throws OverflowError if a coefficient exceeds 64 bits, DivisionByZero for the constant divisor 0, and
// ExpressionTooLarge.
class Expr {
 public:
  Expr(std::int64_t number = 0) noexcept : number_(number) {}

  // `name`: lower-case letters, then digits. Throws ShapeError for any other name, and for names of floats (zf0, zuf0).
  static Expr symbol(std::string_view name);

  bool is_number() const noexcept { return polynomial_ == nullptr; }
  std::int64_t number() const;               // throws ShapeError if it is not a number
  bool is_symbol() const noexcept;           // one symbol and nothing else
  const std::string& symbol_name() const;    // throws ShapeError if it is not a symbol
  std::vector<std::string> symbols() const;  // each once, in order of name: s2 before s10
  bool has_symbol(std::string_view name) const;

  Expr substitute(const ExprOf& replacement) const;
  // Returns nullopt if the value of a symbol is unknown.
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

  std::int64_t number_ = 0;                       // if there is no polynomial
  std::shared_ptr<const Polynomial> polynomial_;  // never a constant
};

Expr floordiv(const Expr& dividend, const Expr& divisor);
Expr mod(const Expr& dividend, const Expr& divisor);
Expr min(const Expr& left, const Expr& right);
Expr max(const Expr& left, const Expr& right);
Expr power(const Expr& base, std::int64_t exponent);  // exponent >= 0, else ShapeError
// `then` if the condition holds, otherwise `otherwise`.
Expr where(const Condition& condition, const Expr& then, const Expr& otherwise);

// Parses torch.export's notation. Returns nullopt if the text is no integer expression but, for example, a float or a
// condition, or if it exceeds a limit. parse_expr(e.text()) == e.
std::optional<Expr> parse_expr(std::string_view text);

// True for the name of an unbacked symbol, which the program itself introduces: `u0`, and for floats `zuf0`.
bool is_unbacked_name(std::string_view symbol) noexcept;

}  // namespace rehearse::shapes
