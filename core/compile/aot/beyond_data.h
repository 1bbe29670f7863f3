// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

// Finds operators on a tensor's state beyond its elements: the size of its storage and its version
// (rehearse/capture/storage.h and versions.h). These operators need the tensor itself and autograd's count of its
// changes. A graph that runs below autograd may work on copies of the tensors that it changes, so the user's tensor
// would not show each change.

bool asks_for_version(const graph::GraphModule& module);

struct UseBeyondData {
  const graph::Node* node;  // null: none
  std::string_view what;    // for messages: "it changes the size of a storage"
};

// The first operator of the graph that uses such state.
UseBeyondData use_beyond_data(const graph::GraphModule& module);

}  // namespace rehearse::compiler
