// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/graph/dead_code.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <rehearse_internal/graph/operators.h>

#include "graph/ir/submodules.h"
#include "graph/ir/targets.h"
#include "graph/run/python/python_functions.h"

namespace rehearse::graph {
namespace {

// Higher-order operators whose only effects are those of their bodies. Others may have further effects: for example,
// they print, or run a kernel that writes.
constexpr std::array<std::string_view, 7> kDoWhatBodiesDo = {
    "cond", "invoke_subgraph",    "tag_activation_checkpoint", "while_loop",
    "wrap", "wrap_with_autocast", "wrap_with_set_grad_enabled"};

// Effects that schemas do not mark: communication, assertions, running statistics, the profiler.
bool has_unmarked_effects(std::string_view name) {
  for (const std::string_view prefix : {"_c10d_functional", "c10d::", "symm_mem::", "profiler::",
                                        "aten::_functional_assert", "aten::_functional_sym_constrain"}) {
    if (name.starts_with(prefix)) return true;
  }
  return name.find("batch_norm") != std::string_view::npos || name.find("instance_norm") != std::string_view::npos;
}

bool is_pure_operator(const c10::OperatorHandle& op) {
  return !op.schema().returns().empty() && !op.schema().is_mutable() && !op.hasTag(at::Tag::nondeterministic_seeded) &&
         !has_unmarked_effects(op.schema().name());
}

// Changes of grad mode and autocast. A captured graph restores both at its end.
bool is_mode(const Node& node) {
  return node.target() == kSetGradEnabled || node.target() == kEnterAutocast || node.target() == kExitAutocast;
}

class Purity {
 public:
  bool of(const Node& node, const GraphModule& module) {
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
        return body != nullptr && of(*body);
      }
      default:
        return false;
    }
  }

 private:
  bool of(const GraphModule& module) {
    const auto known = known_.find(&module);
    if (known != known_.end()) return known->second;
    bool pure = !module.is_leaf();
    for (const Node& node : module.graph()) {
      pure = pure && (node.op() == Op::Placeholder || node.op() == Op::Output || of(node, module));
    }
    return known_[&module] = pure;
  }

  // True if the operator does only what its bodies do, and all bodies are pure. The bodies are GetAttr nodes among the
  // node's arguments.
  bool has_pure_bodies(const Node& node, const GraphModule& module) {
    const std::string_view name = std::string_view(node.target()).substr(kHigherOrder.size());
    if (std::ranges::find(kDoWhatBodiesDo, name) == kDoWhatBodiesDo.end()) return false;
    std::size_t bodies = 0;
    for (const Node* input : node.input_nodes()) {
      if (input->op() != Op::GetAttr || module.find_attribute(input->target()) != nullptr) continue;
      const auto body = module.find_submodule(input->target());
      if (body == nullptr || !of(*body)) return false;
      ++bodies;
    }
    return bodies > 0;
  }

  std::unordered_map<const GraphModule*, bool> known_;
};

void add_expressions(const Argument& argument, std::unordered_set<std::string>& symbols) {
  for_each_leaf(argument, [&symbols](const Argument& leaf) {
    const auto* expression = leaf.get_if<SymExpr>();
    if (expression == nullptr) return;
    for (std::string& symbol : expression->symbols()) symbols.insert(std::move(symbol));
  });
}

// Collects the symbols that later nodes need even though they do not use the node that binds them.
class NeededSymbols {
 public:
  explicit NeededSymbols(const Graph& graph) {
    for (const Node& node : graph) any_ |= !node.meta().unbacked_bindings.empty();
  }

  bool need(const Node& node) const {
    const auto& bound = node.meta().unbacked_bindings;
    return std::ranges::any_of(bound, [&](const std::string& symbol) { return symbols_.contains(symbol); });
  }

  void add(const Node& node) {
    if (!any_) return;
    for (const Argument& argument : node.args()) add_expressions(argument, symbols_);
    for (const auto& [key, argument] : node.kwargs()) add_expressions(argument, symbols_);
    if (node.meta().value == nullptr) return;
    for (std::string& symbol : free_symbols(*node.meta().value)) symbols_.insert(std::move(symbol));
  }

 private:
  bool any_ = false;
  std::unordered_set<std::string> symbols_;
};

}  // namespace

bool is_pure(const Node& node, const GraphModule& module) {
  check_nesting(module);
  return Purity().of(node, module);
}

bool has_effects(const GraphModule& module) {
  check_nesting(module);
  Purity purity;
  for (const Node& node : module.graph()) {
    if (node.op() != Op::Placeholder && node.op() != Op::Output && !purity.of(node, module)) return true;
  }
  return false;
}

bool has_marked_effects_only(const GraphModule& module) {
  check_nesting(module);
  Purity purity;
  return std::ranges::all_of(module.graph(), [&](const Node& node) {
    if (node.op() == Op::Placeholder || node.op() == Op::Output || purity.of(node, module)) return true;
    if (node.op() != Op::CallFunction) return false;
    if (is_mode(node)) return true;
    const auto op = find_operator(node.target());
    return op && op->schema().is_mutable() && !op->hasTag(at::Tag::nondeterministic_seeded) &&
           !has_unmarked_effects(op->schema().name());
  });
}

bool enables_gradients(const GraphModule& module) {
  return std::ranges::any_of(module.graph(), [](const Node& node) {
    const bool* const on = node.target() == kSetGradEnabled ? node.args().at(0).get_if<bool>() : nullptr;
    return on != nullptr && *on;
  });
}

std::size_t eliminate_dead_code(GraphModule& module) {
  check_nesting(module);
  Graph& graph = module.graph();
  const std::size_t before = graph.size();
  Purity purity;
  NeededSymbols symbols(graph);
  for (Node* node = graph.last(); node != nullptr;) {
    Node* const previous = node->prev();
    if (node->users().empty() && !symbols.need(*node) && purity.of(*node, module)) {
      graph.erase_node(*node);
    } else {
      symbols.add(*node);
    }
    node = previous;
  }
  return before - graph.size();
}

}  // namespace rehearse::graph
