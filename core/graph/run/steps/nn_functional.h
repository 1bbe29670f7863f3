// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <rehearse/graph/node.h>

namespace rehearse::graph {

// A call of an ATen operator: its name without the namespace, and positional arguments.
struct AtenCall {
  std::string op;
  List args;
};

// The ATen call for a function of torch.nn.functional (torch/nn/functional.py of PyTorch 2.11); nothing for other
// targets. Throws GraphError for an unknown function, for missing, repeated or unknown arguments, for max_norm of an
// embedding, which would change the weight, and for a negative padding_idx, which would count rows from the end.
std::optional<AtenCall> functional_call(const Node& node);

}  // namespace rehearse::graph
