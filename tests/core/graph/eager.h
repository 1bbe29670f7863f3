// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// Computes the outputs of a graph that Dynamo recorded, by direct calls of ATen's C++ functions. The results are the
// reference for the interpreter. Throws std::runtime_error for an unknown target, or if a function fails.
std::vector<c10::IValue> run_eagerly(const GraphModule& module, const std::vector<c10::IValue>& inputs);

}  // namespace rehearse::graph
