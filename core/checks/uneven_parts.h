// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse_internal/checks/reductions.h>

namespace rehearse::checks {

// A gradient that all ranks have, and the gradient of one process. One-dimensional tensors of doubles.
struct ReducedGradient {
  at::Tensor gradient;
  at::Tensor reference;
};

// The reason why the two gradients differ although they consist of the same parts: the parts of some ranks should weigh
// more.
struct UnevenParts {
  std::string what;  // "ranks have parts of different sizes (0.1 of all on rank 0, ...), and each part counts for 0.5"
  std::string cure;
};

// Finds one weight for each rank, such that the weighted parts of each gradient add up to its reference. Leaves out
// gradients whose parts were not recorded, or come from other ranks than the first gradient's parts. Returns nullopt if
// there are no such weights, if all weights are equal, or if they do not add up to the number of ranks.
std::optional<UnevenParts> uneven_parts(const std::vector<ReducedGradient>& gradients, const Reductions& reductions,
                                        double tolerance);

}  // namespace rehearse::checks
