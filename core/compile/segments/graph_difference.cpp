// SPDX-License-Identifier: BSD-3-Clause
#include "compile/segments/graph_difference.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/compile/errors.h>
#include <rehearse/graph/text.h>

namespace rehearse::compiler {
namespace {

bool is_operator(const graph::Node& node) {
  return node.op() != graph::Op::Placeholder && node.op() != graph::Op::Output;
}

const graph::Node* operator_from(const graph::Node* node) {
  while (node && !is_operator(*node)) node = node->next();
  return node;
}

bool same_arguments(const graph::Node& a, const graph::Node& b) {
  const auto by_name = [](graph::Node& node) { return graph::Argument(node.name()); };
  return graph::map_nodes(graph::Argument(a.args()), by_name) == graph::map_nodes(graph::Argument(b.args()), by_name) &&
         graph::map_nodes(graph::Argument(a.kwargs()), by_name) ==
             graph::map_nodes(graph::Argument(b.kwargs()), by_name);
}

// How the bodies of a higher-order operator differ: the submodules that the node's target names in both modules. Empty
// if they are alike, or if the target names no submodule.
std::string difference_of_bodies(const graph::GraphModule& before, const graph::GraphModule& now,
                                 const graph::Node& node) {
  if (node.op() != graph::Op::GetAttr) return "";
  const auto a = before.find_submodule(node.target()), b = now.find_submodule(node.target());
  return a && b ? difference_of(*a, *b, "the end of a body", "the end of a body") : "";
}

bool same_node(const graph::Node& a, const graph::Node& b) {
  return a.op() == b.op() && a.target() == b.target() && same_arguments(a, b);
}

std::string at_line(const graph::Node& node) {
  const std::string line = node.meta().source_line();
  return line.empty() ? "" : " at " + line;
}

// The text of a node with its arguments, such as `torch.ops.aten.add.Scalar(%x, 2) at f.cpp:3`.
std::string text_with_arguments(const graph::Node& node) {
  std::vector<std::string> arguments;
  for (const graph::Argument& argument : node.args()) arguments.push_back(graph::to_text(argument));
  for (const auto& [name, argument] : node.kwargs()) arguments.push_back(name + "=" + graph::to_text(argument));
  return fmt::format("{}({}){}", node.target(), fmt::join(arguments, ", "), at_line(node));
}

}  // namespace

std::string text_of_node(const graph::Node& node) { return node.target() + at_line(node); }

std::string difference_of(const graph::GraphModule& before, const graph::GraphModule& now,
                          const std::string& before_ends, const std::string& now_ends) {
  const graph::Node* a = operator_from(before.graph().first());
  const graph::Node* b = operator_from(now.graph().first());
  while (a && b && same_node(*a, *b)) {
    if (std::string found = difference_of_bodies(before, now, *a); !found.empty()) return found;
    a = operator_from(a->next());
    b = operator_from(b->next());
  }
  if (a && b && a->op() == b->op() && a->target() == b->target()) {
    return fmt::format("it was {}, and is {} now", text_with_arguments(*a), text_with_arguments(*b));
  }
  if (a || b) {
    return fmt::format("it was {}, and is {} now", a ? text_of_node(*a) : before_ends, b ? text_of_node(*b) : now_ends);
  }
  if (before_ends != now_ends) return fmt::format("it reached {} before, and reaches {} now", before_ends, now_ends);
  const graph::Node* const results_before = before.graph().output_node();
  const graph::Node* const results_now = now.graph().output_node();
  if (results_before && results_now && same_arguments(*results_before, *results_now)) return "";
  return "it runs the same operators as before, but returns other results of them now";
}

void throw_stale(const std::string& function, const std::string& difference) {
  throw StaleCapture(fmt::format(
      "'{}' no longer gives the graph that was compiled, although all its guards hold: {}. It reads "
      "something that is no argument, or a field that visit_fields() does not name: make it an argument, name "
      "it with rehearse::watch(), read it in an eager_region(), or compile with Verify::Always",
      function, difference));
}

}  // namespace rehearse::compiler
