// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/parallel/fsdp_options.h>

#include "parallel/fsdp/sharded_parameter.h"

namespace rehearse::parallel {

struct PlannedUnit {
  std::string path;  // path of the unit's module; empty: the root
  std::vector<NamedParameter> parameters;
};

// Assigns the parameters to units. Units are in the order of their first parameters; units without parameters are left
// out. Throws c10::ValueError for unknown names, for parameters that cannot be sharded, for parameters that belong to
// two units, and for units whose parameters differ in dtype or device.
std::vector<PlannedUnit> plan_units(torch::nn::Module& module, const FullyShardedOptions& options);

// Whether the module or parameter `path` is inside the module `outer`.
bool is_inside(const std::string& path, const std::string& outer);

}  // namespace rehearse::parallel
