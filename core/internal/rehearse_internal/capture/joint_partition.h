// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <rehearse_internal/capture/joint_graph.h>

namespace rehearse::capture {

// A joint graph in two parts: one runs in the forward, the other once the tangents are known.
struct JointPartition {
  // Placeholders: the inputs. Output: a list of the values, then the saved tensors, then the saved numbers.
  std::shared_ptr<graph::GraphModule> forward;
  // Placeholders: saved tensors, saved numbers, tangents. Output: a list, the gradient of each input. Null without a
  // backward.
  std::shared_ptr<graph::GraphModule> backward = nullptr;
  std::size_t saved_tensors = 0;
  std::size_t saved_numbers = 0;
  // For each input, the positions of some tangents. The input's gradient is defined if at least one of these tangents
  // is defined. They are the tangents that the gradient's value depends on or, if it depends on none, those from which
  // autograd reaches the input. Empty: the input has no gradient.
  std::vector<std::vector<std::size_t>> gradient_tangents = {};
};

// Splits where eager autograd does, like PyTorch's default_partition. Operators stay in the part in which they were
// recorded. Each value of the forward that the backward uses is saved once, in the graph's order, and nothing else.
// Both parts fetch attributes themselves and drop dead code. The joint graph does not change: the parts share its
// attributes, and copy its metadata. Throws GraphError if a value to be saved has no metadata, which is needed to tell
// tensors from numbers.
JointPartition partition_joint(const JointGraph& joint);

}  // namespace rehearse::capture
