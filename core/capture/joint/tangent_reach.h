// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <set>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse/graph/node.h>

#include "capture/joint/joint_inputs.h"

namespace rehearse::capture {

// Finds the tangents on which the values of a backward depend. A write to a view affects every tensor that shares the
// view's memory. For example, the backward of matrix_exp() copies the tangent into a slice of zeros and then uses the
// whole tensor.
class TangentReach {
 public:
  explicit TangentReach(const std::vector<const graph::Node*>& tangents);

  // Call it for each node of the backward, in order.
  void pass(const graph::Node& node);
  // Positions of the tangents on which `node` depends, in order.
  std::vector<std::size_t> of(const graph::Node& node) const;

 private:
  std::size_t memory_of(const graph::Node& node);

  std::unordered_map<const graph::Node*, std::size_t> memories_;  // each value's memory
  std::vector<std::set<std::size_t>> reached_;                    // by memory
};

// For each input, the positions of the roots from which autograd reaches it.
std::vector<std::vector<std::size_t>> leading_tangents(const std::vector<at::Tensor>& roots, const JointInputs& inputs);

}  // namespace rehearse::capture
