// SPDX-License-Identifier: BSD-3-Clause
#include "compile/graph_difference.h"

#include <fmt/format.h>

namespace rehearse::compiler {
namespace {

std::string text_of_node(const graph::Node* node) {
  if (!node) return "nothing";
  const std::string line = node->meta().origin ? node->meta().origin->source_line() : "";
  return fmt::format("{}{}", node->target(), line.empty() ? "" : " at " + line);
}

bool same_node(const graph::Node& a, const graph::Node& b) {
  if (a.op() != b.op() || a.target() != b.target() || a.args().size() != b.args().size()) return false;
  const auto by_name = [](graph::Node& node) { return graph::Argument(node.name()); };
  return graph::map_nodes(graph::Argument(a.args()), by_name) == graph::map_nodes(graph::Argument(b.args()), by_name) &&
         graph::map_nodes(graph::Argument(a.kwargs()), by_name) ==
             graph::map_nodes(graph::Argument(b.kwargs()), by_name);
}

}  // namespace

std::string difference_of(const graph::GraphModule& before, const graph::GraphModule& now) {
  const graph::Node* a = before.graph().first();
  const graph::Node* b = now.graph().first();
  while (a && b && same_node(*a, *b)) {
    a = a->next();
    b = b->next();
  }
  if (!a && !b) return "";
  return fmt::format("it was {}, and is {} now", text_of_node(a), text_of_node(b));
}

}  // namespace rehearse::compiler
