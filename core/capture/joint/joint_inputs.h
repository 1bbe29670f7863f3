// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>

#include "capture/joint/joint_recorder.h"

namespace rehearse::capture {

// The inputs of a joint graph: fakes like the examples, which stay as they are, and placeholders for them.
class JointInputs {
 public:
  // One example for each placeholder of the part. Throws GraphError for another number of them, and for real tensors.
  JointInputs(const graph::GraphModule& part, const std::vector<c10::IValue>& examples, JointRecorder& recorder);

  // What to run the part on. Tensors that require a gradient are no leaves: operators may change them in place.
  const std::vector<c10::IValue>& values() const noexcept { return values_; }
  const std::vector<const graph::Node*>& nodes() const noexcept { return nodes_; }

  // What to differentiate with respect to, and which inputs that are. Gradients reach these as the inputs were given,
  // whatever was written to them later.
  const std::vector<at::Tensor>& differentiable() const noexcept { return differentiable_; }
  const std::vector<std::size_t>& positions() const noexcept { return positions_; }

  // Whether what was written to a differentiable input is differentiated: not so below a torch::NoGradGuard.
  bool has_new_history(std::size_t input) const;

 private:
  at::Tensor add_tensor(const at::Tensor& example, const at::Tensor& alias_of);

  std::vector<c10::IValue> values_;
  std::vector<const graph::Node*> nodes_;
  std::vector<at::Tensor> differentiable_;
  std::vector<std::size_t> positions_;
};

}  // namespace rehearse::capture
