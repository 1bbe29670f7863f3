// SPDX-License-Identifier: BSD-3-Clause
#include "checks/values/weight_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rehearse::checks {
namespace {

using Matrix = std::vector<std::vector<double>>;

// Solves linear equations whose right-hand side is the last column. The matrix of the other columns must be one of
// scalar products, so elimination needs no pivoting. Returns nullopt if its rows are almost linearly dependent.
std::optional<std::vector<double>> solution_of(Matrix rows) {
  // If elimination leaves at most this part of a diagonal element, the element's row counts as dependent on the rows
  // above.
  constexpr double kDependent = 1e-9;
  const auto size = rows.size();
  std::vector<double> scale;
  for (std::size_t i = 0; i < size; ++i) scale.push_back(rows[i][i]);
  for (std::size_t i = 0; i < size; ++i) {
    if (!(rows[i][i] > kDependent * scale[i])) return std::nullopt;
    for (std::size_t j = 0; j < size; ++j) {
      if (j == i) continue;
      const double factor = rows[j][i] / rows[i][i];
      for (std::size_t k = i; k <= size; ++k) rows[j][k] -= factor * rows[i][k];
    }
  }
  std::vector<double> solution;
  for (std::size_t i = 0; i < size; ++i) solution.push_back(rows[i][size] / rows[i][i]);
  return solution;
}

}  // namespace

void WeightFit::add(const std::vector<at::Tensor>& parts, const at::Tensor& whole) {
  const auto count = with_whole_.size();
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const double product = parts[i].dot(parts[j]).item<double>();
      products_[i * count + j] += product;
      if (i != j) products_[j * count + i] += product;
    }
    with_whole_[i] += parts[i].dot(whole).item<double>();
  }
  whole_ += whole.dot(whole).item<double>();
  length_ += whole.numel();
}

std::optional<std::vector<double>> WeightFit::weights(double tolerance) const {
  const auto count = with_whole_.size();
  // With no more numbers than weights, some weights always fit.
  if (length_ <= static_cast<std::int64_t>(count)) return std::nullopt;
  Matrix rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = products_.begin() + static_cast<std::ptrdiff_t>(i * count);
    rows[i].assign(first, first + static_cast<std::ptrdiff_t>(count));
    rows[i].push_back(with_whole_[i]);
  }
  auto weights = solution_of(std::move(rows));
  if (!weights) return std::nullopt;
  double left = whole_;
  for (std::size_t i = 0; i < count; ++i) {
    left -= 2 * (*weights)[i] * with_whole_[i];
    for (std::size_t j = 0; j < count; ++j) left += (*weights)[i] * (*weights)[j] * products_[i * count + j];
  }
  const bool is_part = std::all_of(weights->begin(), weights->end(), [&](double each) { return each > -tolerance; });
  if (!is_part || std::sqrt(std::max(left, 0.0)) > tolerance * std::sqrt(whole_)) return std::nullopt;
  return weights;
}

}  // namespace rehearse::checks
