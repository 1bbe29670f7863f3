// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::checks {

// Finds weights with which several parts add up to a whole, by least squares over everything added. Plain data.
class WeightFit {
 public:
  explicit WeightFit(std::size_t parts) : products_(parts * parts), with_whole_(parts) {}

  // All tensors are one-dimensional, of doubles, with equal lengths. Call it while an Unwatched lives.
  void add(const std::vector<at::Tensor>& parts, const at::Tensor& whole);

  // One weight per part. nullopt if no weights fit within the relative error `tolerance`, if the parts are too similar
  // or too short to decide, or if a weight would be below -`tolerance`.
  std::optional<std::vector<double>> weights(double tolerance) const;

 private:
  std::vector<double> products_;    // scalar products of the parts with each other, in rows
  std::vector<double> with_whole_;  // scalar product of each part with the whole
  double whole_ = 0;                // scalar product of the whole with itself
  std::int64_t length_ = 0;
};

}  // namespace rehearse::checks
