// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <rehearse/exec/call_site.h>
#include <rehearse/graph/argument.h>

#include "capture/graph/expression_nodes.h"

namespace rehearse::capture {

// What turns the values of a call into arguments of a node.
struct ArgumentContext {
  std::function<graph::Argument(const at::Tensor&)> tensor_of;  // for a defined tensor
  ExpressionNodes& expressions;                                 // symbolic integers become its nodes
  const exec::CallSite& site;                                   // of the call, for errors
};

// Throws NotCapturable for what no graph can hold: generators, streams, process groups without a
// name in c10d's registry, symbolic floats.
graph::Argument to_argument(const c10::IValue& value, const c10::Type& type, const ArgumentContext& context);

// The arguments of a node that calls an operator.
struct CallArguments {
  graph::List args;
  graph::Dict kwargs;
};

// Of a whole call: by position, those that the schema takes by name only by name. What is the schema's default is left
// out, by position from the end on.
CallArguments to_arguments(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> values,
                           const ArgumentContext& context);

}  // namespace rehearse::capture
