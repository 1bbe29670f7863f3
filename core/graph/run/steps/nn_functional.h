// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <rehearse/graph/node.h>

namespace rehearse::graph {

// A call of one of ATen's operators: its name without the namespace, and arguments by position.
struct AtenCall {
  std::string op;
  List args;
};

// What a function of torch.nn.functional comes to (torch/nn/functional.py of PyTorch 2.11); none for other targets.
// Throws GraphError for a function that is not known here, for arguments that it does not take, and for max_norm of an
// embedding, which changes the weight.
std::optional<AtenCall> functional_call(const Node& node);

}  // namespace rehearse::graph
