// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <rehearse/parallel/ddp_options.h>

#include "parallel/model/module_state.h"

namespace rehearse::parallel {

// Mixed precision: parameters that are there in param_dtype while an iteration computes, and in full
// otherwise
// (_setup_mixed_precision_params(), _root_copy_hook() and _reducer_allreduce_and_upcast_hook() of PyTorch).
class LoweredParameters {
 public:
  // Casts the buffers, and registers a communication hook that ends the iteration for a bucket: it adds up
  // the gradients in reduce_dtype and puts parameters and gradients back into full precision.
  LoweredParameters(const MixedPrecision& dtypes, const torch::nn::Module& module, const IgnoredNames& ignored,
                    const ReducedParameters& reduced, const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                    const std::shared_ptr<c10d::Reducer>& reducer);
  LoweredParameters(const LoweredParameters&) = delete;
  LoweredParameters& operator=(const LoweredParameters&) = delete;
  ~LoweredParameters();

  // Puts copies in param_dtype in the places of all parameters, and casts gradients that are there to it.
  // False if they are in their places already: the last iteration was not reduced.
  bool lower();
  void restore();

 private:
  class State;
  class Hook;
  std::shared_ptr<State> state_;  // the reducer's hook and the callbacks of backward have it too
};

}  // namespace rehearse::parallel
