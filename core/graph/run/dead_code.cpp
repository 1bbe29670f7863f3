// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/dead_code.h>

#include <algorithm>
#include <array>
#include <string_view>

#include <rehearse/graph/operators.h>

#include "graph/run/python_functions.h"

namespace rehearse::graph {
namespace {

constexpr std::string_view kHigherOrder = "torch.ops.higher_order.";

// What these do is what their bodies do. Others may have effects that no body shows: a kernel that writes, a print.
constexpr std::array<std::string_view, 7> kDoWhatBodiesDo = {
    "cond", "invoke_subgraph", "tag_activation_checkpoint", "while_loop", "wrap", "wrap_with_autocast",
    "wrap_with_set_grad_enabled"};

// Effects that a schema does not mark: communication, running statistics, the profiler.
bool has_unmarked_effects(std::string_view name) {
  for (const std::string_view prefix : {"_c10d_functional", "c10d::", "profiler::"}) {
    if (name.starts_with(prefix)) return true;
  }
  return name.find("batch_norm") != std::string_view::npos || name.find("instance_norm") != std::string_view::npos;
}

bool is_pure(const GraphModule& module) {
  for (const Node& node : module.graph()) {
    if (node.op() != Op::Placeholder && node.op() != Op::Output && !is_pure(node, module)) return false;
  }
  return !module.is_leaf();
}

bool is_pure_operator(const c10::OperatorHandle& op) {
  return !op.schema().returns().empty() && !op.schema().is_mutable() &&
         !op.hasTag(at::Tag::nondeterministic_seeded) && !has_unmarked_effects(op.schema().name());
}

// All bodies are among the arguments.
bool has_pure_bodies(const Node& node, const GraphModule& module) {
  const std::string_view name = std::string_view(node.target()).substr(kHigherOrder.size());
  if (std::find(kDoWhatBodiesDo.begin(), kDoWhatBodiesDo.end(), name) == kDoWhatBodiesDo.end()) return false;
  std::size_t bodies = 0;
  for (const Node* input : node.input_nodes()) {
    if (input->op() != Op::GetAttr || module.find_attribute(input->target()) != nullptr) continue;
    const auto body = module.find_submodule(input->target());
    if (body == nullptr || !is_pure(*body)) return false;
    ++bodies;
  }
  return bodies > 0;
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
