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

// The reason why they differ although they consist of the same parts: the parts of some ranks should weigh more.
struct UnevenParts {
  std::string what;  // "ranks have parts of different sizes (0.1 of all on rank 0, 0.9 on rank 1), each weighs 0.5"
  std::string cure;
};

// Returns nullopt if no weights of the ranks' parts give all references, or if all weights are equal.
std::optional<UnevenParts> uneven_parts(const std::vector<ReducedGradient>& gradients, const Reductions& reductions,
                                        double tolerance);

}  // namespace rehearse::checks
