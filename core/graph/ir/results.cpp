// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/graph/results.h>

namespace rehearse::graph {
namespace {

const Argument* returned_by(const Graph& graph) noexcept {
  const Node* const output = graph.output_node();
  return output != nullptr && !output->args().empty() ? &output->args()[0] : nullptr;
}

}  // namespace

std::span<const Argument> results_of(const Graph& graph) noexcept {
  const Argument* const returned = returned_by(graph);
  if (returned == nullptr) return {};
  if (const List* const items = returned->get_if<List>()) return *items;
  return {returned, 1};
}

bool returns_list(const Graph& graph) noexcept {
  const Argument* const returned = returned_by(graph);
  return returned != nullptr && returned->get_if<List>() != nullptr;
}

}  // namespace rehearse::graph
