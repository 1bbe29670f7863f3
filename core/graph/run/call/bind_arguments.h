// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <ATen/core/function_schema.h>

#include <rehearse/graph/node.h>

namespace rehearse::graph {

// One argument of a schema, and the node's argument for it.
struct BoundArgument {
  const c10::Argument* formal = nullptr;
  const Argument* given = nullptr;  // null: the default
  std::string field;                // "args[1] (other)", "kwargs.alpha"
};

// The node's arguments in the order of the schema. Throws GraphError if one is missing, unknown, or passed twice.
std::vector<BoundArgument> bind_arguments(const Node& node, const c10::FunctionSchema& schema);

}  // namespace rehearse::graph
