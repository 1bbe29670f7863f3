// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unordered_map>

#include <rehearse/graph/errors.h>
#include <rehearse/graph/node.h>

namespace rehearse::graph {

using NodeMap = std::unordered_map<const Node*, Node*>;

// The copy of `node`. Throws GraphError if there is none yet because the node that uses it comes first.
inline Node& copy_of(const NodeMap& copies, const Node& node) {
  const auto found = copies.find(&node);
  if (found == copies.end()) throw GraphError(node.name(), "users", "a node that uses it stands before it");
  return *found->second;
}

}  // namespace rehearse::graph
