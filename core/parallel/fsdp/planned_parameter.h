// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "checks/values/module_tensors.h"

namespace rehearse::parallel {

// The module's parameters, under all names that they are registered as, but for those to be ignored. Throws
// c10::ValueError for names that no parameter has, and for parameters that cannot be sharded; for those on the meta
// device, unless `takes_meta`.
std::vector<checks::ModuleTensor> shardable_parameters(const torch::nn::Module& module,
                                                       const std::vector<std::string>& ignored, bool takes_meta);

}  // namespace rehearse::parallel
