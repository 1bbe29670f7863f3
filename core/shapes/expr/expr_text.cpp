// SPDX-License-Identifier: BSD-3-Clause
// Writes expressions and conditions in the notation of torch.export.
#include <string>

#include "shapes/expr/polynomial.h"

namespace rehearse::shapes {
namespace {

std::string atom_text(const Atom& atom);

// Adds parentheses unless the operand is a non-negative number or an atom.
std::string operand_text(const Expr& expr) {
  const bool plain = expr.is_number() ? expr.number() >= 0 : ExprParts::atom(expr) != nullptr;
  return plain ? expr.text() : "(" + expr.text() + ")";
}

std::string call_text(const char* name, const std::vector<Expr>& operands) {
  std::string text = name;
  for (std::size_t i = 0; i < operands.size(); ++i) text += (i == 0 ? "(" : ", ") + operands[i].text();
  return text + ")";
}

std::string atom_text(const Atom& atom) {
  switch (atom.kind) {
    case AtomKind::Symbol:
      return atom.name;
    case AtomKind::FloorDiv:
      return "(" + operand_text(atom.operands[0]) + "//" + operand_text(atom.operands[1]) + ")";
    case AtomKind::Mod:
      return call_text("Mod", atom.operands);
    case AtomKind::Min:
      return call_text("Min", atom.operands);
    case AtomKind::Max:
      return call_text("Max", atom.operands);
    case AtomKind::Where:
      break;
  }
  return "Where(" + atom.condition->text() + ", 1, 0)";
}

// Writes the term without its sign.
std::string term_text(const Term& term) {
  std::string number = std::to_string(term.coefficient);
  if (number.front() == '-') number.erase(0, 1);
  std::string text = term.monomial.empty() || number != "1" ? number : "";
  for (const Factor& factor : term.monomial) {
    if (!text.empty()) text += '*';
    text += atom_text(*factor.atom);
    if (factor.exponent != 1) text += "**" + std::to_string(factor.exponent);
  }
  return text;
}

// Prefers `5 - s0` to `-s0 + 5`.
bool begins_with_number(const Terms& terms) {
  return terms.size() == 2 && terms[0].coefficient < 0 && terms[1].monomial.empty() && terms[1].coefficient > 0;
}

std::string sum_text(const Terms& terms) {
  if (terms.empty()) return "0";
  if (begins_with_number(terms)) return term_text(terms[1]) + " - " + term_text(terms[0]);
  std::string text;
  for (const Term& term : terms) {
    if (!text.empty()) text += term.coefficient < 0 && term.coefficient != INT64_MIN ? " - " : " + ";
    // The least number keeps its sign, because it has no positive form.
    if (term.coefficient == INT64_MIN || (text.empty() && term.coefficient < 0)) text += '-';
    text += term_text(term);
  }
  return text;
}

// Writes a comparison with 0: subtracted terms and the constant move to the right side.
std::string comparison_text(const Expr& expr, const char* sign, const char* turned_sign) {
  Terms left;
  Terms right;
  for (Term term : ExprParts::terms(expr)) {
    const bool to_right = term.monomial.empty() || term.coefficient < 0;
    if (to_right && term.coefficient == INT64_MIN) return sum_text(ExprParts::terms(expr)) + " " + sign + " 0";
    if (to_right) term.coefficient = -term.coefficient;
    (to_right ? right : left).push_back(std::move(term));
  }
  if (!left.empty()) return sum_text(left) + " " + sign + " " + sum_text(right);
  // All terms with symbols are subtracted: `s0 >= 2` reads better than `2 - s0 <= 0`.
  Terms number;
  if (right.back().monomial.empty()) {
    number = {{{}, -right.back().coefficient}};
    right.pop_back();
  }
  return sum_text(right) + " " + turned_sign + " " + sum_text(number);
}

}  // namespace

std::string Expr::text() const { return sum_text(ExprParts::terms(*this)); }

std::string Condition::text() const {
  switch (kind_) {
    case Kind::False:
      return "False";
    case Kind::True:
      return "True";
    case Kind::Equal:
      return comparison_text(expr(), "==", "==");
    case Kind::NotEqual:
      return comparison_text(expr(), "!=", "!=");
    case Kind::AtMostZero:
      return comparison_text(expr(), "<=", ">=");
    default:
      break;
  }
  std::string text;
  for (const Condition& operand : operands()) {
    if (!text.empty()) text += kind_ == Kind::And ? " & " : " | ";
    text += "(" + operand.text() + ")";
  }
  return text;
}

}  // namespace rehearse::shapes
