// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse_internal/checks/reductions.h>

namespace rehearse::checks {

// A gradient that all ranks have, and what one process has; doubles in one dimension.
struct ReducedGradient {
  at::Tensor gradient;
  at::Tensor reference;
};

// Why they differ, where they are made of the same parts: those of some ranks should weigh more.
struct UnevenParts {
  std::string what;  // "ranks have parts of different sizes (0.1 of all on rank 0, 0.9 on rank 1), each weighs 0.5"
  std::string cure;
};

// Nothing where no weights of the ranks' parts give all references, or all weigh alike.
std::optional<UnevenParts> uneven_parts(const std::vector<ReducedGradient>& gradients, const Reductions& reductions,
                                        double tolerance);

}  // namespace rehearse::checks
