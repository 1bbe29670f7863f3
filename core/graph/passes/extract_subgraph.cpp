// SPDX-License-Identifier: BSD-3-Clause
#include <unordered_set>

#include <rehearse/graph/split.h>

#include "graph/ir/node_map.h"

namespace rehearse::graph {
namespace {

class Extraction {
 public:
  Extraction(const GraphModule& module, const std::vector<const Node*>& nodes)
      : module_(module), chosen_(nodes.begin(), nodes.end()), result_(std::make_shared<GraphModule>()) {
    for (const Node* node : nodes) {
      if (&node->graph() != &module.graph()) throw GraphError(node->name(), "", "is a node of another graph");
      if (node->op() == Op::Placeholder || node->op() == Op::Output) {
        throw GraphError(node->name(), "op", "a placeholder or output cannot be part of a subgraph");
      }
    }
  }

  std::shared_ptr<GraphModule> run() {
    std::unordered_set<const Node*> before;
    for (const Node& node : module_.graph()) {
      before.insert(&node);
      if (!chosen_.contains(&node)) continue;
      for (const Node* input : node.input_nodes()) {
        if (!before.contains(input))
          throw GraphError(node.name(), "args", "it uses '" + input->name() + "', which stands after it");
        add_input(*input);
      }
    }
    List outputs;
    for (const Node& node : module_.graph()) {
      if (!chosen_.contains(&node)) continue;
      add(node);
      if (is_output(node)) outputs.emplace_back(copies_.at(&node));
    }
    result_->graph().output(std::move(outputs));
    return result_;
  }

 private:
  // Inputs come before all else, in order of first use; attributes are fetched inside.
  void add_input(const Node& input) {
    if (chosen_.contains(&input) || copies_.contains(&input)) return;
    if (input.op() == Op::GetAttr) return add(input);
    Node& placeholder = result_->graph().placeholder(input.name(), input.name());
    placeholder.meta() = input.meta();
    copies_[&input] = &placeholder;
  }

  void add(const Node& node) {
    copies_[&node] =
        &result_->graph().copy_node(node, [this](Node& input) -> Argument { return copy_of(copies_, input); });
    if (node.op() != Op::GetAttr && node.op() != Op::CallModule) return;
    if (const auto body = module_.find_submodule(node.target())) {
      result_->set_submodule(node.target(), body);
    } else if (const Attribute* attribute = module_.find_attribute(node.target())) {
      result_->set_attribute(node.target(), *attribute);
    } else {
      throw GraphError(node.name(), "target", "there is no attribute or submodule '" + node.target() + "'");
    }
  }

  bool is_output(const Node& node) const {
    for (const Node* user : node.users()) {
      if (!chosen_.contains(user)) return true;
    }
    return node.users().empty();
  }

  const GraphModule& module_;
  std::unordered_set<const Node*> chosen_;
  std::shared_ptr<GraphModule> result_;
  NodeMap copies_;
};

}  // namespace

std::shared_ptr<GraphModule> extract_subgraph(const GraphModule& module, const std::vector<const Node*>& nodes) {
  return Extraction(module, nodes).run();
}

}  // namespace rehearse::graph
