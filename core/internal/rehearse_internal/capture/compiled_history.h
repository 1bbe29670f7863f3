// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/csrc/autograd/function.h>

namespace rehearse::capture {

// The step of autograd that a call of a compiled graph leaves behind: one for all of its results. LibTorch would call a
// hook on each of them in every backward that comes here. Hooks on results to which no gradient comes are left out, as
// in eager mode, where each result has steps of its own.
class CompiledHistory : public torch::autograd::Node {
 public:
  using Node::Node;
};

}  // namespace rehearse::capture
