// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <ATen/core/function_schema.h>

#include "graph/run/call/to_ivalue.h"

namespace rehearse::graph {

// The cost of passing a value to an operator's argument, as Python's binding ranks it. 0: an exact fit. More: a
// conversion. Nothing: the value does not fit. If the argument is a node, the node's value counts.
std::optional<int> cost_of(const Argument& argument, const c10::Argument& formal, const ValueOf& value_of);

// `(Tensor, int, keepdim=bool)`, for messages.
std::string describe(const List& args, const Dict& kwargs, const ValueOf& value_of);

}  // namespace rehearse::graph
