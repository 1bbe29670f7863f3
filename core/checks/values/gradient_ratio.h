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
};

// The values as doubles, in one dimension; a complex number counts as two.
at::Tensor numbers_of(const at::Tensor& tensor);

// `scale`: the largest norm of the model's reference gradients. Gradients that are tiny compared with it count as zero.
// `tolerance`: as in CheckOptions. Either tensor may be undefined.
GradientRatio ratio_of(const at::Tensor& gradient, const at::Tensor& reference, double scale, double tolerance);

// The operation by which all-reduces combined the ranks' parts of a gradient; unknown unless they were recorded.
enum class Reduced { unknown, sum, mean, by_ddp };

// The diagnosis: "0.25 times as large (= 1 / number of ranks): averaged twice ...", for `ranks` ranks.
std::string meaning_of(const GradientRatio& ratio, int ranks, Reduced reduced = Reduced::unknown);

}  // namespace rehearse::checks
