// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse/checks/check_options.h>
#include <rehearse/checks/model_state.h>
#include <rehearse/job/state_finding.h>
#include <rehearse_internal/checks/reductions.h>

#include "checks/replicas.h"
#include "checks/shard_table.h"

namespace rehearse::checks {

struct ShownGradients {
  ReplicaTable table;  // holds gradients, under the names of their parameters
  ShardTable shards;   // for sharded models, until all ranks have arrived
};

using GradientsRound = Round<ShownGradients>;

inline constexpr const char* kGradients = "gradients";

// The current gradients of the parameters. Leaves out shards, and parameters that do not require grad. A parameter
// without a gradient has an undefined tensor.
ModelState gradients_of(const ModelState& parameters);

// The gradients of `loss()` in one process, in the order of the parameters. Restores buffers and the generator
// afterwards. Throws std::invalid_argument if `loss` does not return one number that is computed from the parameters.
std::vector<at::Tensor> reference_gradients(const ModelState& state, at::Generator generator,
                                            const std::function<at::Tensor()>& loss);

// Compares the ranks' gradients with those of one process. `reference` is in the order of `parameters`, which belong to
// the last rank to arrive. Returns nullopt if all agree within the tolerance. `reductions`: null if not recorded.
std::optional<StateFinding> evaluate(const GradientsRound& round, const ModelState& parameters,
                                     const std::vector<at::Tensor>& reference, double tolerance,
                                     const Reductions* reductions);

}  // namespace rehearse::checks
