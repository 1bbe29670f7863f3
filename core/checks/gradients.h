// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
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
  std::string_view what = "gradient";
};

// A parameter in the step of one process.
struct ReferencePart {
  std::string name;
  at::Tensor before, change, gradient;  // not shared; the change has doubles, the gradient may be undefined
};

struct ShownStep {
  ReplicaTable table;  // the parameters after the step
  ShardTable shards;   // for sharded models, until all ranks have arrived
  std::vector<ReferencePart> reference;
  double tolerance = 0;
};

// What one process has.
struct Right {
  at::Tensor value;
  at::Tensor rounding = {};  // for each element, by how much rounding alone may change it; undefined: by nothing
};

using StepRound = Round<ShownStep>;
using GradientsRound = Round<ShownGradients>;

inline constexpr const char* kGradients = "gradients";
inline constexpr const char* kSteps = "steps";

// The current gradients of the parameters. Leaves out shards, and parameters that do not require grad. A parameter
// without a gradient has an undefined tensor.
ModelState gradients_of(const ModelState& parameters);

// The gradients of `loss()` in one process, in the order of the parameters. Restores buffers and the generator
// afterwards. Throws std::invalid_argument if `loss` does not return one number that is computed from the parameters.
std::vector<Right> reference_gradients(const ModelState& state, at::Generator generator,
                                       const std::function<at::Tensor()>& loss);

// Compares the ranks' gradients with those of one process. `reference` is in the order of `own`, the gradients of the
// last rank to arrive. Returns nullopt if all agree within the tolerance. `reductions`: null if not recorded.
std::optional<StateFinding> evaluate(const GradientsRound& round, const ModelState& own,
                                     const std::vector<Right>& reference, double tolerance,
                                     const Reductions* reductions);

// Makes the step of one process. Restores the generator afterwards.
std::vector<ReferencePart> reference_step(const ModelState& reference, at::Generator generator,
                                          const std::function<void()>& step);

// Compares the ranks' step with that of one process. Returns nullopt if ranks are missing.
std::optional<StateFinding> evaluate(const StepRound& round);

}  // namespace rehearse::checks
