// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

// Operators on what a tensor is beside its elements: the size of its storage and its version
// (rehearse/capture/storage.h and versions.h). They mean the tensor itself, and autograd's count of its changes. A
// graph that runs below autograd has copies of what it changes, and counts nothing.

// Whether the graph asks for a version, to which whatever it did before counts.
bool asks_for_version(const graph::GraphModule& module);

struct UseBeyondData {
  const graph::Node* node;  // null: there is none
  std::string_view what;    // for people: "it changes the size of a storage"
};

// The first such operator.
UseBeyondData use_beyond_data(const graph::GraphModule& module);

}  // namespace rehearse::compiler
