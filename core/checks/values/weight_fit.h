// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::checks {

// With which weights several parts add up to a whole: least squares over all that was added. Plain data.
class WeightFit {
 public:
  explicit WeightFit(std::size_t parts) : products_(parts * parts), with_whole_(parts) {}

  // Doubles in one dimension, all of one length. Call it in an Unwatched.
  void add(const std::vector<at::Tensor>& parts, const at::Tensor& whole);

  // By part. Nothing where no weights do, within the relative error `tolerance`; where the parts are alike, or too
  // short to tell; and where a weight would be negative.
  std::optional<std::vector<double>> weights(double tolerance) const;

 private:
  std::vector<double> products_;    // of the parts with each other, in rows
  std::vector<double> with_whole_;  // of each part with the whole
  double whole_ = 0;                // of the whole with itself
  std::int64_t length_ = 0;
};

}  // namespace rehearse::checks
