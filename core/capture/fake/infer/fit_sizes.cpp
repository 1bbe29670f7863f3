// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "capture/fake/infer/sampling.h"

namespace rehearse::capture {
namespace {

using shapes::Expr;
using Values = std::vector<std::int64_t>;

bool has_values(const Expr& expr, const Values& values, const std::vector<Assignment>& assignments) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (value_at(expr, assignments[i]) != values[i]) return false;
  }
  return true;
}

// Returns 1, the symbols, and the products of two symbols.
std::vector<Expr> monomials(const std::vector<std::string>& names) {
  std::vector<Expr> all{Expr(1)};
  for (const std::string& name : names) all.push_back(Expr::symbol(name));
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t k = i; k < names.size(); ++k) all.push_back(Expr::symbol(names[i]) * Expr::symbol(names[k]));
  }
  return all;
}

// Solves linear equations by elimination with partial pivoting. A row has `columns` coefficients and then the right
// side. Free unknowns are 0.
std::vector<long double> solve(std::vector<std::vector<long double>> rows, std::size_t columns) {
  constexpr long double kZero = 1e-9L;
  std::vector<long double> solution(columns, 0);
  std::vector<std::size_t> pivots;
  std::size_t rank = 0;
  for (std::size_t c = 0; c < columns && rank < rows.size(); ++c) {
    const auto pivot =
        std::max_element(rows.begin() + static_cast<std::ptrdiff_t>(rank), rows.end(),
                         [c](const auto& a, const auto& b) { return std::fabs(a[c]) < std::fabs(b[c]); });
    if (std::fabs((*pivot)[c]) < kZero) continue;
    std::swap(*pivot, rows[rank]);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (r == rank) continue;
      const long double factor = rows[r][c] / rows[rank][c];
      for (std::size_t k = c; k <= columns; ++k) rows[r][k] -= factor * rows[rank][k];
    }
    pivots.push_back(c);
    ++rank;
  }
  for (std::size_t r = 0; r < rank; ++r) solution[pivots[r]] = rows[r][columns] / rows[r][pivots[r]];
  return solution;
}

Expr fit_polynomial(const Values& values, const std::vector<Assignment>& assignments, const CallSymbols& symbols) {
  const std::vector<Expr> terms = monomials(symbols.names);
  std::vector<std::vector<long double>> rows;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<long double> row;
    for (const Expr& term : terms) row.push_back(static_cast<long double>(value_at(term, assignments[i])));
    row.push_back(static_cast<long double>(values[i]));
    rows.push_back(std::move(row));
  }
  const std::vector<long double> coefficients = solve(std::move(rows), terms.size());
  Expr sum(0);
  for (std::size_t k = 0; k < terms.size(); ++k) sum = sum + Expr(std::llround(coefficients[k])) * terms[k];
  return sum;
}

// Fits (s + b) // c, the form that sizes of sliding windows have.
std::optional<Expr> fit_quotient(const Values& values, const std::vector<Assignment>& assignments,
                                 const CallSymbols& symbols) {
  constexpr std::int64_t kDivisorMax = 16;
  for (const std::string& name : symbols.names) {
    const Expr symbol = Expr::symbol(name);
    for (std::int64_t divisor = 2; divisor <= kDivisorMax; ++divisor) {
      for (std::int64_t added = -2 * kDivisorMax; added <= 2 * kDivisorMax; ++added) {
        const auto agrees = [&](std::size_t i) {
          const std::int64_t dividend = assignments[i].at(name) + added;
          return dividend >= 0 && dividend / divisor == values[i];
        };
        std::size_t i = 0;
        while (i < values.size() && agrees(i)) ++i;
        if (i == values.size()) return shapes::floordiv(symbol + Expr(added), Expr(divisor));
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Expr> fit(const Values& values, const std::vector<Assignment>& assignments, const CallSymbols& symbols) {
  if (std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == values.front(); })) {
    return Expr(values.front());
  }
  for (const Expr& expr : symbols.expressions) {
    if (has_values(expr, values, assignments)) return expr;
  }
  Expr polynomial = fit_polynomial(values, assignments, symbols);
  if (has_values(polynomial, values, assignments)) return polynomial;
  return fit_quotient(values, assignments, symbols);
}

}  // namespace rehearse::capture
