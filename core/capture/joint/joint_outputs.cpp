// SPDX-License-Identifier: BSD-3-Clause
#include "capture/joint/joint_outputs.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <c10/core/SymBool.h>

#include <rehearse/graph/errors.h>

namespace rehearse::capture {
namespace {

at::Tensor base_of(const at::Tensor& tensor) { return tensor.is_view() ? at::Tensor(tensor._base()) : tensor; }

bool is_fake_tensor(const c10::IValue& value) { return is_tensor(value) && is_fake(value.toTensor()); }

// True if elements of the tensor may share memory, as in the result of unfold(). Then changing one element changes
// another, too, and each in-place operator has its own rule for the gradients of such a change.
bool may_overlap_itself(const at::Tensor& tensor) {
  std::vector<std::pair<c10::SymInt, c10::SymInt>> dimensions;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    if (!TORCH_GUARD_OR_FALSE(tensor.sym_size(d).sym_le(1)))
      dimensions.emplace_back(tensor.sym_stride(d), tensor.sym_size(d));
  }
  std::stable_sort(dimensions.begin(), dimensions.end(), [](const auto& left, const auto& right) {
    return TORCH_GUARD_OR_FALSE(left.first.sym_lt(right.first));
  });
  c10::SymInt reach = 0;
  for (const auto& [stride, size] : dimensions) {
    if (!TORCH_GUARD_OR_FALSE(stride.sym_gt(reach))) return true;
    reach = reach + (size - 1) * stride;
  }
  return false;
}

}  // namespace

JointOutputs::JointOutputs(JointRecorder& recorder, const JointInputs& inputs, const std::vector<c10::IValue>& results)
    : recorder_(recorder), inputs_(inputs), outputs_(results.size()) {
  for (std::size_t i = 0; i < inputs.values().size(); ++i) {
    if (is_tensor(inputs.values()[i])) inputs_by_id_.emplace(fake_id(inputs.values()[i].toTensor()), i);
  }
  if (is_differentiated()) {
    add_changed_inputs();
    count_results_of_bases(results);
  }
  for (std::size_t i = 0; i < results.size(); ++i) add_result(i, results[i]);
  add_views(results);
}

bool JointOutputs::is_differentiated() const { return at::GradMode::is_enabled() && !inputs_.differentiable().empty(); }

void JointOutputs::add_changed_inputs() {
  for (std::size_t i = 0; i < inputs_.values().size(); ++i) {
    if (!is_tensor(inputs_.values()[i])) continue;
    const at::Tensor& tensor = inputs_.values()[i].toTensor();
    if (!tensor.requires_grad() || !recorder_.was_written(tensor)) continue;
    refuse_shared_change(i);
    refuse_other_form(i);
    refuse_lazy_bits(i);
    refuse_overlap(i);
    changed_inputs_.push_back({i, value_of(tensor), inputs_.has_new_history(i)});
  }
}

void JointOutputs::refuse_shared_change(std::size_t input) const {
  const auto& values = inputs_.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == input || !is_tensor(values[i]) || !share_storage(values[i].toTensor(), values[input].toTensor())) continue;
    throw SharedInputChanges(inputs_.nodes()[input]->name(), "inputs",
                             "is changed in place, requires a gradient and shares its memory with the input '" +
                                 inputs_.nodes()[i]->name() + "': give one of them a copy");
  }
}

void JointOutputs::refuse_overlap(std::size_t input) const {
  if (!may_overlap_itself(inputs_.values()[input].toTensor())) return;
  throw SharedInputChanges(
      inputs_.nodes()[input]->name(), "inputs",
      "is changed in place, requires a gradient and has elements that share memory: give it a copy");
}

// The forward works on a copy, and the copy has no conjugate or negative bit.
void JointOutputs::refuse_lazy_bits(std::size_t input) const {
  const at::Tensor& tensor = inputs_.values()[input].toTensor();
  if (!tensor.is_conj() && !tensor.is_neg()) return;
  throw SharedInputChanges(inputs_.nodes()[input]->name(), "inputs",
                           "is changed in place, requires a gradient and is the conjugate or negative of what is in "
                           "its memory: use resolve_conj() and resolve_neg() first");
}

// The forward's result is copied back into the input, and a copy cannot change sizes or strides.
void JointOutputs::refuse_other_form(std::size_t input) const {
  if (!has_other_form(input)) return;
  throw SharedInputChanges(inputs_.nodes()[input]->name(), "inputs",
                           "gets other sizes or strides in place and requires a gradient: use the operator that gives "
                           "a new tensor");
}

bool JointOutputs::has_other_form(std::size_t input) const {
  const graph::TensorMeta* before = inputs_.nodes()[input]->meta().tensor();
  const graph::TensorMeta now = meta_of(inputs_.values()[input].toTensor());
  return before->sizes != now.sizes || before->strides != now.strides || before->storage_offset != now.storage_offset;
}

// After the graph has run, a returned view is made again from its base, which has its final sizes and strides by then.
// Operators that change the view's own sizes or strides in place are not replayed.
void JointOutputs::refuse_view_of_other_form(std::size_t output, const at::Tensor& view) const {
  const at::Tensor base = base_of(view);
  const auto input = inputs_by_id_.find(fake_id(base));
  bool refused = input != inputs_by_id_.end() && has_other_form(input->second);
  for (const at::Tensor& each : {view, base}) {
    const graph::Node* const node = recorder_.node_of(each);
    refused = refused || (node != nullptr && ViewReplay::has_other_form(*node));
  }
  if (!refused) return;
  throw SharedInputChanges("output", "args[0][" + std::to_string(output) + "]",
                           "is a view, and it or its base gets other sizes or strides in place: use the operator that "
                           "gives a new tensor");
}

// The graph changes a copy of the input, so the result would no longer share memory with the caller's tensor.
void JointOutputs::refuse_hidden_alias(std::size_t output, const at::Tensor& result) const {
  for (const ChangedInput& changed : changed_inputs_) {
    if (!share_storage(inputs_.values()[changed.input].toTensor(), result)) continue;
    throw SharedInputChanges("output", "args[0][" + std::to_string(output) + "]",
                             "shares its memory with the input '" + inputs_.nodes()[changed.input]->name() +
                                 "', which is changed in place and requires a gradient, and is no view of it: give "
                                 "one of them a copy");
  }
}

// A view made from the changed base would have another history than this view. The graph cannot return the view as a
// plain value either: then autograd would not know that a later write to the base also changes the view, or that a
// later write to the view also changes the base.
void JointOutputs::refuse_stale_view(std::size_t output, const at::Tensor& view) const {
  if (!view.requires_grad() && !base_of(view).requires_grad()) return;
  throw SharedInputChanges(
      "output", "args[0][" + std::to_string(output) + "]",
      "is a view of another result that was changed in place since: make the view behind the change");
}

void JointOutputs::count_results_of_bases(const std::vector<c10::IValue>& results) {
  for (const c10::IValue& result : results) {
    if (!is_fake_tensor(result)) continue;
    const at::Tensor& tensor = result.toTensor();
    ++results_of_base_[fake_id(base_of(tensor))];
  }
}

// True if the graph is differentiated and the caller also holds the base of this view, or another view of that base. A
// write to either tensor must be visible in both, and to autograd.
bool JointOutputs::is_view_of_visible(const at::Tensor& tensor) const {
  if (!is_differentiated() || !tensor.is_view()) return false;
  const std::uint64_t base = fake_id(base_of(tensor));
  return inputs_by_id_.contains(base) || results_of_base_.at(base) > 1;
}

void JointOutputs::add_result(std::size_t output, const c10::IValue& result) {
  using Kind = GraphOutput::Kind;
  if (!is_tensor(result)) {
    outputs_[output] = {Kind::Value, constant_of(output, result)};
    return;
  }
  const at::Tensor& tensor = result.toTensor();
  if (!is_fake(tensor)) {
    outputs_[output] = {Kind::Value, value_of(recorder_.fake_of(tensor))};
    return;
  }
  const auto input = inputs_by_id_.find(fake_id(tensor));
  if (input != inputs_by_id_.end()) {
    outputs_[output] = {Kind::Input, input->second};
  } else if (is_view_of_visible(tensor)) {
    outputs_[output].kind = Kind::View;  // add_views() sets the index
    const at::Tensor base = base_of(tensor);
    if (!inputs_by_id_.contains(fake_id(base))) {
      refuse_hidden_alias(output, base);
      value_of(base);
    }
  } else {
    refuse_hidden_alias(output, tensor);
    outputs_[output] = {Kind::Value, value_of(tensor)};
  }
}

void JointOutputs::add_views(const std::vector<c10::IValue>& results) {
  ViewReplay replay([this](const graph::Node& node) { return recorder_.is_without_grad_mode(node); });
  for (const graph::Node* input : inputs_.nodes()) replay.add_source(input);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    // The first values are the new contents of changed inputs. The caller copies them into its own tensors, so a view
    // of a changed input is made from the input and not from the value.
    replay.add_source(i < changed_inputs_.size() ? nullptr : values_[i].node());
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (outputs_[i].kind != GraphOutput::Kind::View) continue;
    const at::Tensor& view = results[i].toTensor();
    refuse_view_of_other_form(i, view);
    const graph::Node* node = recorder_.node_of(view);
    if (node != nullptr && replay.can_make(*node)) {
      outputs_[i].index = replay.add(*node);
      continue;
    }
    refuse_hidden_alias(i, view);
    refuse_stale_view(i, view);
    const std::size_t before = values_.size();
    outputs_[i] = {GraphOutput::Kind::Value, value_of(view)};
    if (values_.size() != before) replay.add_source(nullptr);
  }
  views_ = replay.finish();
}

std::size_t JointOutputs::value_of(const at::Tensor& tensor) {
  const auto [known, is_new] = values_by_id_.emplace(fake_id(tensor), values_.size());
  if (!is_new) return known->second;
  graph::Node* const node = recorder_.node_of(tensor);
  if (node == nullptr) throw graph::GraphError("output", "args[0]", "has a tensor that no operator gave");
  values_.emplace_back(*node);
  tensors_.push_back(tensor);
  return values_.size() - 1;
}

std::size_t JointOutputs::constant_of(std::size_t output, const c10::IValue& value) {
  graph::Argument constant;
  if (value.isSymInt()) {
    constant = recorder_.expressions().of(value.toSymInt());
  } else if (value.isInt()) {
    constant = recorder_.unbacked_result(output);
    if (constant.is_none()) constant = value.toInt();
  } else if (value.isDouble()) {
    constant = value.toDouble();
  } else if (value.isBool()) {
    constant = value.toBool();
  } else if (value.isString()) {
    constant = value.toStringRef();
  } else if (!value.isNone() && !value.isTensor()) {
    throw graph::GraphError("output", "args[0]",
                            "has an item that is a " + value.tagKind() + "; tensors and numbers can be returned");
  }
  values_.push_back(std::move(constant));
  tensors_.emplace_back();
  return values_.size() - 1;
}

}  // namespace rehearse::capture
