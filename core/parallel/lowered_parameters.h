// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <rehearse/parallel/ddp_options.h>

#include "parallel/model/module_state.h"

namespace rehearse::parallel {

// Mixed precision: parameters that have param_dtype while an iteration computes, and full precision otherwise
// (_setup_mixed_precision_params(), _root_copy_hook() and _reducer_allreduce_and_upcast_hook() in PyTorch).
class LoweredParameters {
 public:
  // Casts the buffers if there is a buffer_dtype. Registers a communication hook that ends the iteration for each
  // bucket: the hook reduces the gradients (in reduce_dtype, if there is one), and restores parameters and gradients to
  // full precision.
  LoweredParameters(const MixedPrecision& dtypes, const torch::nn::Module& module, const IgnoredNames& ignored,
                    const ReducedParameters& reduced, const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                    const std::shared_ptr<c10d::Reducer>& reducer);
  LoweredParameters(const LoweredParameters&) = delete;
  LoweredParameters& operator=(const LoweredParameters&) = delete;
  ~LoweredParameters();

  // Replaces the values of all parameters by copies in param_dtype, and casts existing gradients. Does nothing and
  // returns false if there is no param_dtype, or if the parameters are still lowered because the last iteration was not
  // reduced.
  bool lower();
  void restore();

 private:
  class State;
  class Hook;
  std::shared_ptr<State> state_;  // shared with the reducer's hook and the callbacks of backward
};

}  // namespace rehearse::parallel
