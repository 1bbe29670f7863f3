// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/outline_bodies.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "capture/trace/recording/body_marks.h"
#include "capture/trace/recording/body_nodes.h"
#include "capture/trace/recording/border_meta.h"
#include "capture/trace/recording/fold_linear.h"
#include "graph/ir/targets.h"

namespace rehearse::capture {
namespace {

using graph::Argument;
using graph::GraphModule;
using graph::List;
using graph::Node;

const std::int64_t& number_of(const Node& mark) { return *mark.args()[0].get_if<std::int64_t>(); }

std::string name_of(const std::string& operation) {
  return operation == "tag_activation_checkpoint" ? "checkpoint" : operation;
}

// Moves the nodes of a body into a submodule, and adds the node that calls it.
class Outline {
 public:
  Outline(GraphModule& module, const BodyNodes& nodes) : module_(module), nodes_(nodes) {}

  void run() {
    add_operands();
    for (const Node* node : nodes_.nodes()) add(*node);
    List results;
    for (Node* result : nodes_.results()) results.emplace_back(*copies_.at(result));
    body_->graph().output(std::move(results));
    fold_linear(*body_);
    call();
  }

 private:
  void add_operands() {
    const std::size_t brought = brought_before(module_, nodes_.begin());
    const auto add = [&](Node& operand) {
      Node& placeholder = body_->graph().placeholder(operand.name());
      placeholder.meta() = at_border(operand, brought);
      copies_.emplace(&operand, &placeholder);
      operands_.push_back(&operand);
    };
    for (Node* input : nodes_.inputs()) add(*input);
    inputs_ = operands_.size();
    for (const Node* node : nodes_.nodes()) {
      for (Node* input : node->input_nodes()) {
        if (!nodes_.has(*input) && !copies_.contains(input)) add(*input);
      }
    }
  }

  // Copies a node into the body, and moves the bodies of inner nodes along.
  void add(const Node& node) {
    if (node.op() == graph::Op::GetAttr) {
      body_->set_submodule(node.target(), module_.find_submodule(node.target()));
      module_.remove_submodule(node.target());
    }
    copies_[&node] = &body_->graph().copy_node(node, [this](Node& input) { return Argument(*copies_.at(&input)); });
  }

  void call() {
    graph::Graph& graph = module_.graph();
    const std::string name = name_of(nodes_.operation());
    const std::string target = name + "_" + std::to_string(number_of(nodes_.begin())) + "_body";
    module_.set_submodule(target, body_);
    const std::size_t brought = brought_before(module_, nodes_.end());
    {
      const graph::Graph::InsertionPoint here = graph.inserting_before(nodes_.end());
      List arguments = {graph.get_attr(target)};
      for (Node* operand : operands_) arguments.emplace_back(*operand);
      Node& node = graph.call_function(std::string(graph::kHigherOrder) + nodes_.operation(), std::move(arguments),
                                       {{"inputs", static_cast<std::int64_t>(inputs_)}}, name);
      node.meta().origin = nodes_.begin().meta().origin;
      graph::ValueMeta::List values;
      for (Node* result : nodes_.results()) {
        const auto index = static_cast<std::int64_t>(values.size());
        Node& item = graph.call_function(std::string(graph::kGetItem), {node, index});
        item.meta() = at_border(*result, brought);
        item.meta().origin = node.meta().origin;
        values.push_back(*item.meta().value);
        result->replace_all_uses_with(item);
      }
      node.meta().set_value(std::move(values));
    }
    const std::vector<Node*> taken = nodes_.nodes();
    graph.erase_node(nodes_.end());
    for (auto node = taken.rbegin(); node != taken.rend(); ++node) graph.erase_node(**node);
  }

  GraphModule& module_;
  const BodyNodes& nodes_;
  std::shared_ptr<GraphModule> body_ = std::make_shared<GraphModule>("Body");
  std::unordered_map<const Node*, Node*> copies_;
  std::vector<Node*> operands_;
  std::size_t inputs_ = 0;
};

void outline(GraphModule& module, Node& begin, Node& end, std::vector<Remark>* remarks) {
  BodyNodes nodes(module, begin, end);
  nodes.hoist_numbers();
  if (nodes.nodes().empty()) {
    module.graph().erase_node(end);
    return;
  }
  if (const auto why = nodes.cannot_be_body()) {
    if (remarks != nullptr) {
      remarks->push_back(not_outlined(*why, begin.meta().origin ? begin.meta().origin->site : exec::CallSite()));
    }
    module.graph().erase_node(end);
    return;
  }
  Outline(module, nodes).run();
}

}  // namespace

Remark not_outlined(const std::string& why, const exec::CallSite& where) {
  return {"the code of a checkpoint is part of the graph, and all that its backward needs is kept: " + why, where};
}

void outline_bodies(GraphModule& module, std::vector<Remark>* remarks) {
  std::vector<Node*> marks;
  for (Node& node : module.graph()) {
    if (node.target() == kBodyBegin || node.target() == kBodyEnd) marks.push_back(&node);
  }
  std::vector<Node*> open;
  for (Node* mark : marks) {
    if (mark->target() == kBodyBegin) {
      open.push_back(mark);
      continue;
    }
    const auto begin = std::find_if(open.rbegin(), open.rend(),
                                    [&](const Node* each) { return number_of(*each) == number_of(*mark); });
    if (begin == open.rend()) {
      module.graph().erase_node(*mark);
      continue;
    }
    const auto first = std::prev(begin.base());
    Node* const begun = *first;
    for (auto unended = std::next(first); unended != open.end(); ++unended) module.graph().erase_node(**unended);
    open.erase(first, open.end());
    outline(module, *begun, *mark, remarks);
    module.graph().erase_node(*begun);
  }
  for (Node* unended : open) module.graph().erase_node(*unended);
}

}  // namespace rehearse::capture
