// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <rehearse/exec/call_site.h>
#include <rehearse/graph/argument.h>

#include "capture/graph/expression_nodes.h"

namespace rehearse::capture {

struct ArgumentContext {
  std::function<graph::Argument(const at::Tensor&)> tensor_of;  // for a defined tensor
  ExpressionNodes& expressions;                                 // symbolic integers become its nodes
  const exec::CallSite& site;                                   // the call, for errors
};

// Throws NotCapturable for values that no graph can hold, such as generators, storages, streams, symbolic floats, and
// process groups without a name in c10d's registry.
graph::Argument to_argument(const c10::IValue& value, const c10::Type& type, const ArgumentContext& context);

struct CallArguments {
  graph::List args;
  graph::Dict kwargs;
};

// Converts all arguments of a call. Keyword-only arguments go to `kwargs`, the others are positional. Arguments equal
// to their default are left out, positional ones only at the end.
CallArguments to_arguments(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> values,
                           const ArgumentContext& context);

}  // namespace rehearse::capture
