// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

// Finds operators that a graph can only have under eager autograd:
//   * operators on a tensor's state beyond its elements, which is the size of its storage and its version
//     (rehearse/capture/storage.h and versions.h). They need the tensor itself and autograd's count of its changes. A
//     graph that runs below autograd may work on copies of the tensors that it changes, so the user's tensor would not
//     show each change;
//   * opaque(), and operators that the program registers. Their code must run in each call, with its own gradients. A
//     recorded backward would keep what the code read and did while it was recorded.

bool asks_for_version(const graph::GraphModule& module);

struct EagerOnly {
  const graph::Node* node;  // null: none
  std::string what;         // for messages: "it changes the size of a storage"
};

// The first such operator of the graph or of one of its bodies.
EagerOnly find_eager_only(const graph::GraphModule& module);

}  // namespace rehearse::compiler
