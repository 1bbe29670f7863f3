// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include <rehearse/checks/model_state.h>
#include <rehearse/job/state_finding.h>

namespace rehearse::checks {

inline constexpr const char* kFinite = "finite";

struct NonFinite {
  StateFinding finding;
  at::Tensor tensor;  // the tensor that contains the NaN or Inf
};

// Finds the first NaN or Inf in a rank's state: in its tensors, then in their gradients. Returns nullopt if all are
// finite. `buffers` (CheckOptions::buffers): whether to search buffers. nullopt searches them for NaN only, because an
// attention mask may consist of -Inf.
std::optional<NonFinite> first_non_finite(const ModelState& state, std::optional<bool> buffers, int rank,
                                          const std::string& name, std::uint64_t number);

}  // namespace rehearse::checks
