// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/dead_code.h>

#include <rehearse/graph/operators.h>

#include "graph/run/python_functions.h"

namespace rehearse::graph {
namespace {

constexpr std::string_view kHigherOrder = "torch.ops.higher_order.";

bool is_pure(const GraphModule& module) {
  for (const Node& node : module.graph()) {
    if (node.op() != Op::Placeholder && node.op() != Op::Output && !is_pure(node, module)) return false;
  }
  return !module.is_leaf();
}

bool is_pure_operator(const c10::OperatorHandle& op) {
  return !op.schema().returns().empty() && !op.schema().is_mutable() && !op.hasTag(at::Tag::nondeterministic_seeded);
}

// All bodies are among the arguments.
bool has_pure_bodies(const Node& node, const GraphModule& module) {
  for (const Node* input : node.input_nodes()) {
    if (input->op() != Op::GetAttr) continue;
    const auto body = module.find_submodule(input->target());
    if (body != nullptr && !is_pure(*body)) return false;
  }
  return true;
}

}  // namespace

bool is_pure(const Node& node, const GraphModule& module) {
  switch (node.op()) {
    case Op::GetAttr:
      return true;
    case Op::CallFunction:
      if (find_python_function(node.target()) != nullptr) return true;
      if (node.target().starts_with(kHigherOrder)) return has_pure_bodies(node, module);
      if (const auto op = find_operator(node.target())) return is_pure_operator(*op);
      return false;
    case Op::CallModule: {
      const auto body = module.find_submodule(node.target());
      return body != nullptr && is_pure(*body);
    }
    default:
      return false;
  }
}

std::size_t eliminate_dead_code(GraphModule& module) {
  Graph& graph = module.graph();
  const std::size_t before = graph.size();
  for (Node* node = graph.last(); node != nullptr;) {
    Node* const previous = node->prev();
    if (node->users().empty() && is_pure(*node, module)) graph.erase_node(*node);
    node = previous;
  }
  return before - graph.size();
}

}  // namespace rehearse::graph
