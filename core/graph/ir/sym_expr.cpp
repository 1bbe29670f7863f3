// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/sym_expr.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace rehearse::graph {
namespace {

bool is_identifier_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Lower-case letters followed by digits: s0, u12, zf3.
bool is_symbol(std::string_view word) {
  std::size_t letters = 0;
  while (letters < word.size() && word[letters] >= 'a' && word[letters] <= 'z') ++letters;
  std::size_t end = letters;
  while (end < word.size() && word[end] >= '0' && word[end] <= '9') ++end;
  return letters > 0 && end > letters && end == word.size();
}

std::vector<std::string> symbols_in(std::string_view text) {
  std::set<std::string> symbols;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_identifier_character(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_identifier_character(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    const bool is_call = end < text.size() && text[end] == '(';
    if (!is_call && is_symbol(word)) symbols.emplace(word);
    at = end;
  }
  return {symbols.begin(), symbols.end()};
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  return names;
}

}  // namespace

SymExpr::SymExpr(std::string_view text) {
  if (auto expr = shapes::parse_expr(text)) {
    value_ = *std::move(expr);
  } else if (auto condition = shapes::parse_condition(text)) {
    value_ = *std::move(condition);
  } else {
    value_ = std::string(text);
  }
}

const std::string* SymExpr::symbol() const noexcept {
  if (const shapes::Expr* known = expr()) return known->is_symbol() ? &known->symbol_name() : nullptr;
  const auto* text = std::get_if<std::string>(&value_);
  return text != nullptr && is_symbol(*text) ? text : nullptr;
}

std::vector<std::string> SymExpr::symbols() const {
  if (const shapes::Expr* known = expr()) return sorted(known->symbols());
  if (const shapes::Condition* known = condition()) return sorted(known->symbols());
  return symbols_in(std::get<std::string>(value_));
}

std::string SymExpr::text() const {
  if (const shapes::Expr* known = expr()) return known->text();
  if (const shapes::Condition* known = condition()) return known->text();
  return std::get<std::string>(value_);
}

}  // namespace rehearse::graph
