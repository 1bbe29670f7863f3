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
  at::Tensor tensor;  // that holds it
};

// The first NaN or Inf in what a rank has: its tensors, then their gradients. Nothing where all are finite. `buffers`
// (CheckOptions::buffers): whether they are looked at. Left out: for NaN alone, as a mask of attention is one of -Inf.
std::optional<NonFinite> first_non_finite(const ModelState& state, std::optional<bool> buffers, int rank,
                                          const std::string& name, std::uint64_t number);

}  // namespace rehearse::checks
