// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <rehearse/shapes/condition.h>
#include <rehearse/shapes/expr.h>

namespace rehearse::graph {

// A symbolic number or truth value of a graph: an integer expression, a condition, or a text that is neither, such as
// expressions of floats (`2.0*zf0`). Backed symbols are s0, s1, ...; unbacked ones u0, u1, ...; symbols of floats zf0
// and zuf0.
class SymExpr {
 public:
  SymExpr(shapes::Expr expr = {}) : value_(std::move(expr)) {}
  SymExpr(shapes::Condition condition) : value_(std::move(condition)) {}
  // Parses the notation of torch.export and Dynamo: `s0*2`, `(s0//2)`, `u0 >= 0`. Keeps a text that it cannot parse as
  // it is.
  SymExpr(std::string_view text);
  SymExpr(const std::string& text) : SymExpr(std::string_view(text)) {}
  SymExpr(const char* text) : SymExpr(std::string_view(text)) {}

  // Null if it is of another kind.
  const shapes::Expr* expr() const noexcept { return std::get_if<shapes::Expr>(&value_); }
  const shapes::Condition* condition() const noexcept { return std::get_if<shapes::Condition>(&value_); }

  // The symbol, if the expression is one symbol and nothing else; else null.
  const std::string* symbol() const noexcept;
  // The symbols in it, sorted as text, without duplicates. In a text, everything that looks like a symbol: lower-case
  // letters followed by digits, unless it is a function's name (`log2(s0)` has s0).
  std::vector<std::string> symbols() const;

  // A text from which an equal SymExpr can be made.
  std::string text() const;

  bool operator==(const SymExpr&) const = default;

 private:
  std::variant<shapes::Expr, shapes::Condition, std::string> value_;
};

}  // namespace rehearse::graph
