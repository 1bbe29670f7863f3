// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>

#include "capture/joint/joint_recorder.h"

namespace rehearse::capture {

// The inputs of a joint graph: fakes like the examples, and their placeholders. The examples do not change.
class JointInputs {
 public:
  // Needs one example for each placeholder of the captured graph `part`. Throws GraphError for another number of
  // examples, and for real tensors.
  JointInputs(const graph::GraphModule& part, const std::vector<c10::IValue>& examples, JointRecorder& recorder);

  // The arguments for running the captured graph. A tensor that requires a gradient is no leaf, so operators may change
  // it in place.
  const std::vector<c10::IValue>& values() const noexcept { return values_; }
  const std::vector<const graph::Node*>& nodes() const noexcept { return nodes_; }

  // The backward differentiates with respect to these tensors, one for each input that requires a gradient. The
  // gradient of such a tensor is the gradient of the input as the caller passed it, even if operators wrote to the
  // input later.
  const std::vector<at::Tensor>& differentiable() const noexcept { return differentiable_; }
  // For each tensor of differentiable(), the position of its input in values().
  const std::vector<std::size_t>& positions() const noexcept { return positions_; }

  // Call it after the forward, for an input that then requires grad. True if autograd recorded writes to the input, so
  // that the input has another history than at the beginning. False for writes under a torch::NoGradGuard.
  bool has_new_history(std::size_t input) const;

 private:
  at::Tensor add_tensor(const at::Tensor& example, const at::Tensor& alias_of);

  std::vector<c10::IValue> values_;
  std::vector<const graph::Node*> nodes_;
  std::vector<at::Tensor> differentiable_;
  std::vector<std::size_t> positions_;
};

}  // namespace rehearse::capture
