// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/border_meta.h"

#include <algorithm>

namespace rehearse::capture {

std::size_t brought_before(const graph::GraphModule& module, const graph::Node& end) {
  std::size_t brought = 0;
  for (const graph::Node* node = module.graph().first(); node != &end; node = node->next()) {
    brought = std::max(brought, node->meta().brings_history);
  }
  return brought;
}

graph::Metadata at_border(const graph::Node& node, std::size_t brought) {
  graph::Metadata meta = graph::once_brought(node.meta(), brought);
  meta.unbacked_bindings.clear();
  meta.brings_history = meta.history_from = 0;
  return meta;
}

}  // namespace rehearse::capture
