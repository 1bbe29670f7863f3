// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <ATen/core/function_schema.h>

#include "graph/run/call/to_ivalue.h"

namespace rehearse::graph {

// How far a value is from what an operator takes, as Python's binding sees it: 0 is an exact fit, more is a conversion;
// none: it cannot be given. Nodes are judged by their values.
std::optional<int> cost_of(const Argument& argument, const c10::Argument& formal, const ValueOf& value_of);

// `(Tensor, int, keepdim=bool)`, for messages.
std::string describe(const List& args, const Dict& kwargs, const ValueOf& value_of);

}  // namespace rehearse::graph
