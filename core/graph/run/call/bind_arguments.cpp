// SPDX-License-Identifier: BSD-3-Clause
#include "graph/run/call/bind_arguments.h"

#include <rehearse/graph/errors.h>

namespace rehearse::graph {

std::vector<BoundArgument> bind_arguments(const Node& node, const c10::FunctionSchema& schema) {
  std::vector<BoundArgument> bound;
  std::size_t used = 0;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& formal = schema.arguments()[i];
    BoundArgument& argument = bound.emplace_back(BoundArgument{&formal, nullptr, ""});
    const Argument* named = node.kwarg(formal.name());
    if (!formal.kwarg_only() && i < node.args().size()) {
      if (named != nullptr) throw GraphError(node.name(), "kwargs." + formal.name(), "is given by position too");
      argument.given = &node.args()[i];
      argument.field = "args[" + std::to_string(i) + "] (" + formal.name() + ")";
      ++used;
    } else if (named != nullptr) {
      argument.given = named;
      argument.field = "kwargs." + formal.name();
      ++used;
    } else if (!formal.default_value()) {
      throw GraphError(node.name(), formal.name(), "is missing; the operator is " + c10::toString(schema));
    }
  }
  if (used != node.args().size() + node.kwargs().size()) {
    throw GraphError(node.name(), "args", "has arguments that the operator does not take: " + c10::toString(schema));
  }
  return bound;
}

}  // namespace rehearse::graph
