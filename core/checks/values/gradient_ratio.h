// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse::checks {

// The relation of a gradient to the right gradient.
struct GradientRatio {
  enum class Kind {
    equal,
    multiple,     // `ratio` times the right gradient
    no_multiple,  // it points in another direction
    missing,      // it is absent or all zeros, and should not be
    unexpected,   // it should be absent or all zeros
    not_finite,
    other_shape,
  };
  Kind kind = Kind::equal;
  double ratio = 1;
  double error = 0;  // relative, of the ratio
};

// The values as doubles, in one dimension; a complex number counts as two.
at::Tensor numbers_of(const at::Tensor& tensor);
// The same for a bound of each element: as many as `tensor` has numbers. Undefined for undefined bounds.
at::Tensor numbers_of_bounds(const at::Tensor& bounds, const at::Tensor& tensor);

// `scale`: the largest norm of the model's reference gradients. Gradients that are tiny compared with it count as zero.
// `tolerance`: as in CheckOptions. Either tensor may be undefined. `rounding`: for each element, by how much rounding
// alone may change it; undefined: by nothing.
GradientRatio ratio_of(const at::Tensor& gradient, const at::Tensor& reference, double scale, double tolerance,
                       const at::Tensor& rounding = {});

// Whether the ratios may be the same number.
bool may_be_one(const GradientRatio& a, const GradientRatio& b);

// "0.25 times as large", for a multiple.
std::string times_text(const GradientRatio& ratio);

// The operation by which all-reduces combined the ranks' parts of a gradient; unknown unless they were recorded.
enum class Reduced { unknown, sum, mean, by_ddp };

// The diagnosis: "0.25 times as large (= 1 / number of ranks): averaged twice ...", for `ranks` ranks.
std::string meaning_of(const GradientRatio& ratio, int ranks, Reduced reduced = Reduced::unknown);

}  // namespace rehearse::checks
