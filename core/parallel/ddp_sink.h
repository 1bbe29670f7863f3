// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::parallel {

// Passes all outputs that have a grad_fn through one autograd node, and replaces them by copies (_DDPSink in
// torch/nn/parallel/distributed.py). If the loss leaves out an output, the parameters behind that output are still in
// the graph, so the reducer waits for them. The common node lets backward reach these parameters, with an undefined
// gradient. Backward calls `on_backward` when it reaches the node.
void pass_through_sink(std::vector<at::Tensor>& outputs, std::function<void()> on_backward);

}  // namespace rehearse::parallel
