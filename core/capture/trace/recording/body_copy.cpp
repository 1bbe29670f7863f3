// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/body_copy.h"

#include <utility>

#include "capture/trace/recording/border_meta.h"
#include "capture/trace/recording/fold_linear.h"

namespace rehearse::capture {

using graph::Node;

BodyCopy::BodyCopy(graph::GraphModule& module, const BodyNodes& nodes)
    : module_(module), nodes_(nodes), brought_(brought_before(module, nodes.begin())) {}

void BodyCopy::add_placeholder(const Node& node, const std::string& name) {
  Node& placeholder = body_->graph().placeholder(name);
  placeholder.meta() = at_border(node, brought_);
  copies_.emplace(&node, &placeholder);
}

void BodyCopy::add_operand(Node& node) {
  add_placeholder(node, node.name());
  operands_.push_back(&node);
}

void BodyCopy::add_operands_among(const std::vector<Node*>& used) {
  for (Node* node : used) {
    if (!nodes_.has(*node) && !copies_.contains(node)) add_operand(*node);
  }
}

void BodyCopy::add_operands_of_nodes() {
  for (const Node* node : nodes_.nodes()) add_operands_among(node->input_nodes());
}

void BodyCopy::finish(const graph::Argument& result, const std::string& name) {
  for (const Node* node : nodes_.nodes()) copy(*node);
  body_->graph().output(graph::map_nodes(result, [this](const Node& node) { return mapped(node); }));
  fold_linear(*body_);
  module_.set_submodule(name, std::move(body_));
}

void BodyCopy::copy(const Node& node) {
  if (node.op() == graph::Op::GetAttr) {
    body_->set_submodule(node.target(), module_.find_submodule(node.target()));
    module_.remove_submodule(node.target());
  }
  copies_[&node] = &body_->graph().copy_node(node, [this](const Node& input) { return mapped(input); });
}

}  // namespace rehearse::capture
