// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse::checks {

// A gradient against the one that is right.
struct GradientRatio {
  enum class Kind {
    equal,
    multiple,     // `ratio` times it
    no_multiple,  // of another direction
    missing,      // there is none, or it is all zeros, and should not be
    unexpected,   // it should be none, or all zeros
    not_finite,
    other_shape,
  };
  Kind kind = Kind::equal;
  double ratio = 1;
};

// `scale`: the norm of a gradient against which rounding errors are small; `tolerance`: as in CheckOptions. Either
// tensor may be undefined.
GradientRatio ratio_of(const at::Tensor& gradient, const at::Tensor& reference, double scale, double tolerance);

// What the all-reduces of a gradient made of the ranks' parts, as far as somebody has looked.
enum class Reduced { unknown, sum, mean };

// "0.25 = 1/n: averaged twice, ...": what it means among `ranks`.
std::string meaning_of(const GradientRatio& ratio, int ranks, Reduced reduced = Reduced::unknown);

}  // namespace rehearse::checks
