// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <rehearse/checks/check_options.h>
#include <rehearse/checks/model_state.h>
#include <rehearse/job/state_finding.h>

namespace rehearse::checks {

inline constexpr std::string_view kGradientsName = "gradients";
inline constexpr std::string_view kFiniteName = "finite";

// The part of the checkers that a rank can do alone, for runs whose ranks cannot read each other's state. nullopt: no
// finding. gradients_here() is not for sharded models.
std::optional<StateFinding> gradients_here(int rank, int ranks, const ModelState& state, const at::Generator& generator,
                                           const std::function<at::Tensor()>& loss, const CheckOptions& options);
std::optional<StateFinding> finite_here(int rank, const ModelState& state, const CheckOptions& options);

// See RankContext::saved_record().
std::string record_of(int rank, int ranks, const std::vector<ModelState>& parts);
// How what `rank` has loaded differs from what it had saved; empty if it does not. See RankContext::check_saved().
std::string unlike_saved(const std::vector<std::string>& records, int rank, int ranks,
                         const std::vector<ModelState>& parts);

// The headline, followed by the details, one per line.
std::string text_of(const StateFinding& finding);

}  // namespace rehearse::checks
