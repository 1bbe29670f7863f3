// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <rehearse/exec/call_site.h>
#include <rehearse/graph/argument.h>

#include "capture/trace/symbol_nodes.h"

namespace rehearse::capture {

// What turns the values of a call into arguments of a node.
struct ArgumentContext {
  std::function<graph::Node&(const at::Tensor&)> node_of;
  SymbolNodes& symbols;
  const exec::CallSite& site;
};

// Throws NotCapturable for what no graph can hold: generators, streams, process groups.
graph::Argument to_argument(const c10::IValue& value, const c10::Type& type, const ArgumentContext& context);

struct CallArguments {
  graph::List args;
  graph::Dict kwargs;
};

// Of a whole call. Values that are the schema's defaults are left out, where those before them allow it.
CallArguments to_arguments(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> values,
                           const ArgumentContext& context);

}  // namespace rehearse::capture
