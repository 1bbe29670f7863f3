// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/csrc/autograd/function.h>

namespace rehearse::capture {

// The autograd node of one call of a compiled graph. All results of that call have this node as their history. LibTorch
// would call the hooks of all results in every backward that reaches this node. Rehearse skips the hooks of results
// that get no gradient. Eager mode does not call these hooks either, because each result has its own node there.
class CompiledHistory : public torch::autograd::Node {
 public:
  using Node::Node;
};

}  // namespace rehearse::capture
