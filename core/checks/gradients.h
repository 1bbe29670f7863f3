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
  ReplicaTable table;  // of gradients, under their parameters' names
  ShardTable shards;   // of sharded models, until all ranks have come
};

using GradientsRound = Round<ShownGradients>;

inline constexpr const char* kGradients = "gradients";

// The gradients that parameters have now, but for shards; a parameter without one has an undefined tensor.
ModelState gradients_of(const ModelState& parameters);

// What the gradients of `loss()` are in one process. Nothing but the computation is left of it: buffers and the
// generator are as they were.
std::vector<at::Tensor> reference_gradients(const ModelState& state, at::Generator generator,
                                            const std::function<at::Tensor()>& loss);

// What ranks have against what one process has (by parameter, in the order of `parameters`, which are those of the rank
// that came last). Nothing where all is the same within the tolerance. `reductions`: null where none are known.
std::optional<StateFinding> evaluate(const GradientsRound& round, const ModelState& parameters,
                                     const std::vector<at::Tensor>& reference, double tolerance,
                                     const Reductions* reductions);

}  // namespace rehearse::checks
