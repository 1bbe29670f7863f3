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

// A symbolic number or truth of a graph: an integer expression or a condition, or a text that is neither, as those of
// floats are (`2.0*zf0`). Backed symbols are s0, s1, ...; unbacked ones u0, u1, ...; of floats zf0 and zuf0.
class SymExpr {
 public:
  SymExpr(shapes::Expr expr = {}) : value_(std::move(expr)) {}
  SymExpr(shapes::Condition condition) : value_(std::move(condition)) {}
  // What the text says in the notation of torch.export and Dynamo: `s0*2`, `(s0//2)`, `u0 >= 0`. Another text is kept
  // as it is.
  SymExpr(std::string_view text);
  SymExpr(const std::string& text) : SymExpr(std::string_view(text)) {}
  SymExpr(const char* text) : SymExpr(std::string_view(text)) {}

  // Null when it is something else.
  const shapes::Expr* expr() const noexcept { return std::get_if<shapes::Expr>(&value_); }
  const shapes::Condition* condition() const noexcept { return std::get_if<shapes::Condition>(&value_); }

  // The symbol, if it is one and nothing more; else null.
  const std::string* symbol() const noexcept;
  // Of a text, whatever looks like one: lower-case letters and then digits, and no function's name: `log2(s0)` has s0.
  // Each once, sorted as text.
  std::vector<std::string> symbols() const;

  // An equal SymExpr is made of it.
  std::string text() const;

  bool operator==(const SymExpr&) const = default;

 private:
  std::variant<shapes::Expr, shapes::Condition, std::string> value_;
};

}  // namespace rehearse::graph
