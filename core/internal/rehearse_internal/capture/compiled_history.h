// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/csrc/autograd/function.h>

namespace rehearse::capture {

// The autograd node that a call of a compiled graph leaves: one node for all of its results. LibTorch would call the
// hooks of all results in every backward that reaches this node. Rehearse skips the hooks of results that get no
// gradient, as eager mode does, where each result has its own node.
class CompiledHistory : public torch::autograd::Node {
 public:
  using Node::Node;
};

}  // namespace rehearse::capture
