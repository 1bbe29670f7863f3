// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "parallel/model/module_state.h"

namespace rehearse::parallel {

// While it lives, the parameters belong to one rank. The ranks of a world share a process. If a program made its model
// outside of the ranks' body, all ranks would use that one model, and the reducers of several ranks would hook onto the
// same gradients. Does nothing outside of worlds.
class ParameterClaims {
 public:
  // `rank`: the rank in the world. `who`: the class that errors name. Throws c10::ValueError if a parameter belongs to
  // another rank.
  ParameterClaims(int rank, const ReducedParameters& parameters, const char* who = "DistributedDataParallel");
  ParameterClaims(const ParameterClaims&) = delete;
  ParameterClaims& operator=(const ParameterClaims&) = delete;
  ~ParameterClaims();

 private:
  const std::uint64_t world_;
  std::vector<const c10::TensorImpl*> claimed_;
};

}  // namespace rehearse::parallel
