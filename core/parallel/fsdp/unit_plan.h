// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/parallel/fsdp_options.h>

#include "parallel/fsdp/sharded_parameter.h"

namespace rehearse::parallel {

struct PlannedUnit {
  std::string path;  // of its module; empty: the root
  std::vector<NamedParameter> parameters;
};

// Which parameters go into which unit, units in order of modules; those without parameters are left out. Throws
// c10::ValueError for names that nothing has, and for parameters that cannot be sharded or are in two units.
std::vector<PlannedUnit> plan_units(torch::nn::Module& module, const FullyShardedOptions& options);

// Is the unit's module inside the other's?
bool is_inside(const std::string& path, const std::string& outer);

}  // namespace rehearse::parallel
