// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// The outputs of a graph that Dynamo recorded, computed by calls of ATen's C++ functions that are written out here: the
// reference for the interpreter. Throws std::runtime_error for a target that it does not know.
std::vector<c10::IValue> run_eagerly(const GraphModule& module, const std::vector<c10::IValue>& inputs);

}  // namespace rehearse::graph
