// SPDX-License-Identifier: BSD-3-Clause
#include "capture/joint/view_replay.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <rehearse/graph/errors.h>
#include <rehearse_internal/graph/operators.h>

#include "graph/ir/targets.h"

namespace rehearse::capture {
namespace {

using graph::Node;
using graph::Op;

enum class Role { View, InPlace, Number, Other };

// A view operator takes `Tensor(a) self` and returns `Tensor(a)` or `Tensor(a)[]`.
Role role_of_operator(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  if (schema.returns().empty() || schema.arguments().empty()) return Role::Other;
  if (schema.name() == "aten::sym_size" || schema.name() == "aten::sym_stride" ||
      schema.name() == "aten::sym_storage_offset") {
    return Role::Number;
  }
  const c10::AliasInfo* argument = schema.arguments()[0].alias_info();
  const c10::AliasInfo* result = schema.returns()[0].alias_info();
  if (argument == nullptr || result == nullptr) return Role::Other;
  return argument->isWrite() ? Role::InPlace : Role::View;
}

// True for in-place operators like t_() and squeeze_(), which change the sizes, strides or offset of their tensor. Also
// true if the graph has no metadata of the tensor from before or after the operator.
bool changes_form(const Node& in_place) {
  const Node* const changed = in_place.args()[0].node();
  const graph::TensorMeta* const before = changed != nullptr ? changed->meta().tensor() : nullptr;
  const graph::TensorMeta* const now = in_place.meta().tensor();
  return before == nullptr || now == nullptr || before->sizes != now->sizes || before->strides != now->strides ||
         before->storage_offset != now->storage_offset;
}

Role role_of(const Node& node) {
  if (node.op() != Op::CallFunction) return Role::Other;
  if (const auto op = graph::find_operator(node.target())) return role_of_operator(*op);
  return node.target() == "_operator.getitem" ? Role::View : Role::Number;
}

}  // namespace

bool ViewReplay::has_other_form(const Node& view) {
  const Role role = role_of(view);
  if (role == Role::InPlace) {
    return changes_form(view) || has_other_form(*view.args()[0].node());
  }
  const auto& inputs = view.input_nodes();
  return role == Role::View &&
         std::any_of(inputs.begin(), inputs.end(), [](const Node* each) { return has_other_form(*each); });
}

void ViewReplay::add_source(const Node* node) {
  Node& input = module_->graph().placeholder(node != nullptr ? node->name() : "unused");
  if (node == nullptr) return;
  input.meta() = node->meta();
  copies_.emplace(node, &input);
}

bool ViewReplay::can_make(const Node& view) const {
  if (copies_.contains(&view)) return true;
  const Role role = role_of(view);
  if (role == Role::Other || view.input_nodes().empty()) return false;
  if (role == Role::InPlace) return view.args()[0].node() != nullptr && can_make(*view.args()[0].node());
  const auto& inputs = view.input_nodes();
  return std::all_of(inputs.begin(), inputs.end(), [this](const Node* input) { return can_make(*input); });
}

std::size_t ViewReplay::add(const Node& view) {
  views_.emplace_back(take(view));
  return views_.size() - 1;
}

Node& ViewReplay::take(const Node& node) {
  const auto known = copies_.find(&node);
  if (known != copies_.end()) return *known->second;
  Node* copy = nullptr;
  if (role_of(node) == Role::InPlace) {
    copy = &take(*node.args()[0].node());
  } else {
    for (const Node* input : node.input_nodes()) take(*input);
    copy = &copy_of(node);
  }
  copies_.emplace(&node, copy);
  return *copy;
}

// All inputs of `node` must have been copied.
Node& ViewReplay::copy_of(const Node& node) {
  const bool without_grad_mode = role_of(node) == Role::View && without_grad_mode_(node);
  if (without_grad_mode) set_grad_mode(false);
  Node& copy = module_->graph().copy_node(node, [this](Node& input) -> graph::Argument { return take(input); });
  if (without_grad_mode) set_grad_mode(true);
  return copy;
}

void ViewReplay::set_grad_mode(bool enabled) {
  module_->graph().call_function(std::string(graph::kSetGradEnabled), {enabled});
}

std::shared_ptr<graph::GraphModule> ViewReplay::finish() {
  if (views_.empty()) return nullptr;
  module_->graph().output(std::move(views_));
  return std::move(module_);
}

}  // namespace rehearse::capture
