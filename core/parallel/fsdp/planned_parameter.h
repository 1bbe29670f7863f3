// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "checks/values/module_tensors.h"

namespace rehearse::parallel {

// The module's parameters, under all of their registered names, except those to be ignored. Throws c10::ValueError for
// unknown names, for parameters that cannot be sharded, and, unless `takes_meta`, for parameters on the meta device.
std::vector<checks::ModuleTensor> shardable_parameters(const torch::nn::Module& module,
                                                       const std::vector<std::string>& ignored, bool takes_meta);

}  // namespace rehearse::parallel
