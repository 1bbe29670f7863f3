// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "parallel/model/module_state.h"

namespace rehearse::parallel {

// While it lives, the parameters are one rank's. Ranks of a world are in one process, where a model from outside of
// their body would be the same for all of them: reducers of several ranks would hang on to the same gradients. Outside
// of worlds it does nothing.
class ParameterClaims {
 public:
  // `rank`: of the world. `who`: whose errors these are. Throws c10::ValueError where a parameter is another rank's.
  ParameterClaims(int rank, const ReducedParameters& parameters, const char* who = "DistributedDataParallel");
  ParameterClaims(const ParameterClaims&) = delete;
  ParameterClaims& operator=(const ParameterClaims&) = delete;
  ~ParameterClaims();

 private:
  const std::uint64_t world_;
  std::vector<const c10::TensorImpl*> claimed_;
};

}  // namespace rehearse::parallel
