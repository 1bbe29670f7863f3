// SPDX-License-Identifier: BSD-3-Clause
#include "checks/values/gradient_ratio.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/stack.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>

#include <rehearse_internal/checks/non_finite.h>

#include "checks/values/tensor_difference.h"

namespace rehearse::checks {
namespace {

double tolerance_of(at::ScalarType type) {
  constexpr double kOfDouble = 1e-6, kOfFloat = 1e-3, kOfShorter = 2e-2;
  if (type == at::kDouble || type == at::kComplexDouble) return kOfDouble;
  return type == at::kFloat || type == at::kComplexFloat ? kOfFloat : kOfShorter;
}

double norm_of(const at::Tensor& tensor) { return tensor.norm().item<double>(); }

// Texts for a gradient that is `ranks` times too large: each rank's loss is that many times too large, or the gradients
// of the ranks were summed.
std::string n_times(int ranks, Reduced reduced) {
  const bool twice_too = ranks == 2;
  if (reduced == Reduced::mean || reduced == Reduced::by_ddp) {
    return fmt::format(
        " (= number of ranks), although {}: each rank's loss is a sum over a batch of {} "
        "where the mean is meant, or is multiplied by the number of ranks{}",
        reduced == Reduced::mean ? "the reduction takes the mean"
                                 : "DDP takes the mean, unless a communication hook of the program sums",
        ranks, twice_too ? ", or was counted twice (a second backward, or no zero_grad)" : "");
  }
  if (twice_too) return " (= number of ranks): a sum where the mean is meant, or reduced or added up twice";
  return reduced == Reduced::sum
             ? " (= number of ranks): a sum over the ranks where the mean is meant"
             : fmt::format(" (= number of ranks): a sum over the ranks, or over a batch of {}, where the mean is meant",
                           ranks);
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-2 * std::abs(b); }

}  // namespace

at::Tensor numbers_of(const at::Tensor& tensor) {
  const auto values = plain(tensor);
  return (values.is_complex() ? at::view_as_real(values) : values).to(at::kDouble).flatten();
}

at::Tensor numbers_of_bounds(const at::Tensor& bounds, const at::Tensor& tensor) {
  if (!bounds.defined()) return bounds;
  return (tensor.is_complex() ? at::stack({bounds, bounds}, -1) : bounds).flatten();
}

GradientRatio ratio_of(const at::Tensor& gradient, const at::Tensor& reference, double scale, double tolerance,
                       const at::Tensor& rounding) {
  using Kind = GradientRatio::Kind;
  const bool there = gradient.defined(), wanted = reference.defined();
  if (!there && !wanted) return {};
  if (there && wanted && gradient.sizes() != reference.sizes()) return {Kind::other_shape, 0};
  if ((there && has_non_finite(gradient)) || (wanted && has_non_finite(reference))) {
    return there && wanted && same_values(gradient, reference) ? GradientRatio{} : GradientRatio{Kind::not_finite, 0};
  }
  if (tolerance == 0) tolerance = tolerance_of((there ? gradient : reference).scalar_type());
  const auto g = there ? numbers_of(gradient) : at::Tensor(), r = wanted ? numbers_of(reference) : at::Tensor();
  const auto bounds = numbers_of_bounds(rounding, there ? gradient : reference);
  const auto beyond_rounding = [&](const at::Tensor& numbers, double times = 1) {
    return norm_of(bounds.defined() ? at::where(numbers.abs().le(bounds * times), 0, numbers) : numbers);
  };
  const double g_norm = there ? beyond_rounding(g) : 0, r_norm = wanted ? norm_of(r) : 0;
  // If terms cancel, rounding errors of the terms remain.
  const double nothing = 1e-3 * tolerance * scale;
  if (g_norm <= nothing && r_norm <= nothing) return {};
  if (there && wanted && beyond_rounding(g - r) <= tolerance * r_norm) return {};
  if (r_norm <= nothing) return {Kind::unexpected, 0};
  if (g_norm <= nothing) return {Kind::missing, 0};
  // Numbers that rounding may change a lot say little about the ratio.
  auto weighted = r;
  if (bounds.defined()) {
    const double usual = tolerance * r_norm / std::sqrt(static_cast<double>(r.numel()));
    weighted = r / (bounds / usual + 1).square();
  }
  const double square = weighted.dot(r).item<double>(), ratio = weighted.dot(g).item<double>() / square;
  const double times = std::max(1.0, std::abs(ratio));
  if (beyond_rounding(g - r * ratio, times) > tolerance * norm_of(g)) return {Kind::no_multiple, 0};
  const double by_rounding = bounds.defined() ? norm_of(weighted * bounds) * times / square : 0;
  return {Kind::multiple, ratio, tolerance + by_rounding / std::abs(ratio)};
}

bool may_be_one(const GradientRatio& a, const GradientRatio& b) {
  return a.kind == b.kind && std::abs(a.ratio - b.ratio) <= (a.error + b.error) * std::abs(a.ratio);
}

std::string times_text(const GradientRatio& found) {
  const double whole = std::round(found.ratio), part = std::round(1 / found.ratio);
  const auto is_near = [&](double value) { return std::abs(found.ratio - value) <= found.error * std::abs(value); };
  if (whole != 0 && is_near(whole)) return fmt::format("{:.6g} times as large", whole);
  if (part != 0 && is_near(1 / part)) return fmt::format("{:.6g} times as large", 1 / part);
  const int digits = found.error < 1e-5 ? 6 : found.error < 1e-3 ? 4 : 3;
  return fmt::format("{:.{}g} times as large", found.ratio, digits);
}

std::string meaning_of(const GradientRatio& found, int ranks, Reduced reduced) {
  using Kind = GradientRatio::Kind;
  switch (found.kind) {
    case Kind::equal:
      return "equal";
    case Kind::no_multiple:
      return "no multiple of what one process computes: it comes from other data, or was reduced in another way";
    case Kind::missing:
      return "zero or missing: no backward reached the parameter, the gradient was cleared, or it was never reduced";
    case Kind::unexpected:
      return "not zero, and one process computes zero";
    case Kind::not_finite:
      return "not finite, or one process computes one that is not finite";
    case Kind::other_shape:
      return "of another shape";
    case Kind::multiple:
      break;
  }
  const double n = ranks, ratio = found.ratio;
  const auto value = times_text(found);
  if (ranks > 1 && near(ratio, 1 / n))
    return value +
           " (= 1 / number of ranks): averaged twice (a loss divided by the number of ranks, and a reduction that "
           "divides, too)";
  if (ranks > 1 && near(ratio, n)) return value + n_times(ranks, reduced);
  if (ranks > 1 && near(ratio, n * n)) return value + " (= number of ranks squared): summed over the ranks twice";
  if (ranks > 1 && near(ratio, 1 / (n * n))) return value + " (= 1 / number of ranks squared): averaged three times";
  if (near(ratio, 2)) {
    return value +
           ": counted twice (reduced twice, a second backward, or no zero_grad), or a sum over a batch of 2 where the "
           "mean is meant";
  }
  if (near(ratio, -1)) return value + ": the sign is reversed";
  const double whole = std::round(ratio), part = std::round(1 / ratio);
  if (whole >= 2 && near(ratio, whole))
    return value + fmt::format(": added up {0} times, or a sum over a batch of {0} where the mean is meant", whole);
  if (part >= 2 && near(ratio, 1 / part)) return value + fmt::format(": divided by {} once too often", part);
  return value + ": scaled, as by clipping or a loss scale";
}

}  // namespace rehearse::checks
