// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <rehearse/graph/argument.h>

#include "capture/graph/expression_nodes.h"

namespace rehearse::capture {

// The arguments of a node that calls an operator.
struct CallArguments {
  graph::List args;
  graph::Dict kwargs;
};

// `arguments` of a call as a node has them: by position, those that the schema takes by name only by name; what is the
// schema's default is left out, by position from the end on. `tensor_of`: the argument for a defined tensor. Symbolic
// integers become nodes. Throws GraphError, naming operator and argument, for what a graph cannot hold: generators,
// streams, symbolic floats.
CallArguments call_arguments(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                             const std::function<graph::Argument(const at::Tensor&)>& tensor_of,
                             ExpressionNodes& expressions);

}  // namespace rehearse::capture
