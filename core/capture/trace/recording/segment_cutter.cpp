// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/segment_cutter.h"

#include <optional>
#include <string>
#include <utility>

#include <rehearse/shapes/expr.h>

#include "capture/trace/recording/fold_linear.h"
#include "capture/trace/recording/outline_bodies.h"
#include "capture/trace/recording/outline_hooks.h"

namespace rehearse::capture {

using graph::Node;

namespace {

// True for numbers, which each segment returns because later segments may compute with them. Later segments compute
// Booleans again.
bool is_number(const Node& node) {
  const graph::SymScalarMeta* const scalar = node.meta().value ? node.meta().value->scalar() : nullptr;
  return scalar && scalar->kind != graph::SymScalarMeta::Kind::Bool;
}

}  // namespace

// Copies nodes of the whole graph one by one into a segment. A value from elsewhere becomes a placeholder.
class SegmentCutter::Copy {
 public:
  explicit Copy(const SegmentCutter& cutter) : cutter_(cutter) {}

  void take(const Node& node) {
    for (const Node* input : node.input_nodes()) node_of(*input);
    Node& copy = module_->graph().copy_node(node, [this](Node& input) -> graph::Argument { return node_of(input); });
    copies_.emplace(&node, &copy);
    if (!first_) first_ = &copy;
  }

  bool has(const Node& node) const { return copies_.contains(&node); }
  graph::Argument mapped(const graph::Argument& argument) {
    return graph::map_nodes(argument, [this](Node& node) -> graph::Argument { return node_of(node); });
  }

  Segment finish(graph::Argument output) {
    module_->graph().output(std::move(output));
    outline_hooks(*module_);
    outline_bodies(*module_, nullptr);
    fold_linear(*module_);
    segment_.module = std::move(module_);
    segment_.writes_to_alias = shares_memory_ && cutter_.has_written_;
    return std::move(segment_);
  }

 private:
  Node& node_of(const Node& node) {
    if (const auto found = copies_.find(&node); found != copies_.end()) return *found->second;
    return add_placeholder(node);
  }

  Node& add_placeholder(const Node& node) {
    Node* input = nullptr;
    {
      std::optional<graph::Graph::InsertionPoint> here;
      if (first_) here.emplace(module_->graph(), first_);
      input = &module_->graph().placeholder(node.op() == graph::Op::Placeholder ? node.target() : node.name());
    }
    input->meta() = graph::once_brought(node.meta(), cutter_.brought_);
    input->meta().unbacked_bindings.clear();
    copies_.emplace(&node, input);
    segment_.sources.push_back(cutter_.source_of(node));
    if (const auto found = cutter_.storages_.find(&node); found != cutter_.storages_.end()) {
      shares_memory_ = !memory_.insert(found->second._unsafe_get_target()).second || shares_memory_;
    }
    if (const graph::TensorMeta* meta = node.meta().tensor()) add_symbols(*meta);
    return *input;
  }

  // Adds the symbols of a tensor's sizes right after the tensor.
  void add_symbols(const graph::TensorMeta& meta) {
    for (const graph::SymInt& size : meta.sizes) {
      if (!size.is_symbolic()) continue;
      for (const std::string& symbol : size.expression().symbols()) {
        if (cutter_.symbols_.knows_symbol(symbol)) node_of(*cutter_.symbols_.of(shapes::Expr::symbol(symbol)).node());
      }
    }
  }

  const SegmentCutter& cutter_;
  std::shared_ptr<graph::GraphModule> module_ = std::make_shared<graph::GraphModule>();
  std::map<const Node*, Node*> copies_;
  Node* first_ = nullptr;
  std::set<const c10::StorageImpl*> memory_;  // storages of the inputs
  bool shares_memory_ = false;
  Segment segment_;
};

std::vector<const Node*> SegmentCutter::nodes_until(const Node* end) const {
  std::vector<const Node*> nodes;
  for (const Node* node = last_ ? last_->next() : graph_.graph().first(); node && node != end; node = node->next()) {
    if (node->op() != graph::Op::Placeholder && node->op() != graph::Op::Output) nodes.push_back(node);
  }
  return nodes;
}

bool SegmentCutter::has(const Node& node) const {
  const Node* each = last_ ? last_->next() : graph_.graph().first();
  while (each != nullptr && each != &node) each = each->next();
  return each != nullptr;
}

Segment::Source SegmentCutter::source_of(const Node& node) const {
  if (const auto found = numbers_.find(&node); found != numbers_.end()) return found->second;
  if (const GraphInput* input = inputs_.placed_at(node)) return *input;
  throw graph::GraphError(node.name(), "", "is no value that a later segment can have");
}

void SegmentCutter::add_storage(const Node& node, const at::Tensor& fake) {
  if (fake.has_storage()) storages_.insert_or_assign(&node, fake.storage().getWeakStorageImpl());
}

Segment SegmentCutter::take(const std::set<const Node*>& wanted, const Node* end) {
  Copy copy(*this);
  graph::List results;
  const std::vector<const Node*> nodes = nodes_until(end);
  for (const Node* node : nodes) copy.take(*node);
  for (const Node* node : nodes) {
    if (!is_number(*node) && !wanted.contains(node)) continue;
    results.push_back(copy.mapped(*const_cast<Node*>(node)));
    add_value(*node);
  }
  const std::size_t count = results.size();
  Segment segment = copy.finish(std::move(results));
  segment.results = count;
  return segment;
}

Segment SegmentCutter::take_last(const graph::Argument& output) {
  Copy copy(*this);
  for (const Node* node : nodes_until(nullptr)) copy.take(*node);
  return copy.finish(copy.mapped(output));
}

Segment SegmentCutter::take_single(const Node& node) {
  Copy copy(*this);
  copy.take(node);
  return copy.finish(copy.mapped(graph::List{*const_cast<Node*>(&node)}));
}

}  // namespace rehearse::capture
