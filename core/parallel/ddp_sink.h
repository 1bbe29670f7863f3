// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::parallel {

// Passes all outputs that have a grad_fn through one autograd node, and puts copies in their places (_DDPSink
// of torch/nn/parallel/distributed.py). Why: a parameter behind an output that the loss leaves out is in the
// graph, so the reducer waits for it; the common node lets backward reach it, with an undefined gradient.
// Backward calls `on_backward` when it comes to the node.
void pass_through_sink(std::vector<at::Tensor>& outputs, std::function<void()> on_backward);

}  // namespace rehearse::parallel
