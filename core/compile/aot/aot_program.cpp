// SPDX-License-Identifier: BSD-3-Clause
#include "compile/aot/aot_program.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <rehearse/comm/span_log.h>
#include <rehearse/shapes/errors.h>
#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "compile/aot/aot_node.h"
#include "compile/aot/captured_hooks.h"
#include "compile/aot/tangent_form.h"

namespace rehearse::compiler {
namespace {

// The saved values that a backward uses, in order: names of nodes, with the expression if the value is a number.
std::vector<std::string> saved_names(const capture::JointPartition& partition) {
  std::vector<std::string> names;
  for (const graph::Node* input : partition.backward->graph().placeholders()) {
    if (names.size() == partition.saved_tensors + partition.saved_numbers) break;
    const auto* number = input->meta().value->scalar();
    names.push_back(number != nullptr ? input->name() + " = " + number->expression.text() : input->name());
  }
  return names;
}

// True for an operator of the forward that computes tensors. Excludes numbers, because the forward also computes
// numbers that only the backward needs.
bool is_of_forward(const graph::Node& node) {
  if (node.op() != graph::Op::CallFunction || node.target().starts_with("torch.ops.aten.sym_")) return false;
  return node.target().starts_with("torch.ops.") || node.target() == "_operator.getitem";
}

// The forms of the defined tangents. For a tangent whose memory has gaps, the list has the usual form: the backward
// copies such a tangent into that form.
std::vector<capture::Tangent> forms_of(const std::vector<at::Tensor>& tangents,
                                       const std::vector<capture::Tangent>& usual) {
  std::vector<capture::Tangent> forms;
  for (std::size_t i = 0; i < tangents.size(); ++i) {
    if (!tangents[i].defined()) continue;
    const auto form = has_form(tangents[i], usual[i].form) ? std::nullopt : form_of(tangents[i]);
    forms.push_back(form ? capture::Tangent{usual[i].value, *form} : usual[i]);
  }
  return forms;
}

std::size_t guards_of(const std::shared_ptr<shapes::ShapeEnv>& shapes) {
  return shapes != nullptr ? shapes->guards().size() + shapes->asserts().size() : 0;
}

// True if the backward asserts facts about sizes. The ShapeEnv knows these facts after the first recording, so a second
// recording would lack the assertions.
bool checks_facts_in_backward(const capture::JointGraph& joint) {
  for (const graph::Node* node = joint.backward_begin; node != nullptr; node = node->next()) {
    if (node->target() == "torch.ops.aten._assert_scalar.default") return true;
  }
  return false;
}

// While it lives, operators run below autograd and autocast, because the graph already contains what autograd and
// autocast would do. In-place operators still increment the versions of tensors.
struct BelowAutograd {
  at::AutoDispatchBelowAutograd no_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
};

bool requires_grad(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().requires_grad();
}

std::optional<graph::Interpreter> interpreter_of(const std::shared_ptr<graph::GraphModule>& module) {
  return module != nullptr ? std::optional<graph::Interpreter>(std::in_place, module) : std::nullopt;
}

std::vector<c10::IValue> run_below(const graph::Interpreter& graph, std::vector<c10::IValue> inputs) {
  const BelowAutograd below;
  return graph.run(std::move(inputs));
}

// A copy in its own storage with the same strides and offset, because the graph may ask for them.
at::Tensor copy_with_layout(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense() && tensor.storage_offset() == 0) return at::clone(tensor);
  const std::size_t bytes = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize(),
                                                             static_cast<std::size_t>(tensor.storage_offset()));
  const auto elements = static_cast<std::int64_t>(bytes / tensor.itemsize());
  const at::Tensor storage = at::empty({elements}, tensor.options());
  return storage.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset()).copy_(tensor);
}

bool shares_memory(const at::Tensor& tensor, const std::vector<c10::IValue>& others) {
  return std::any_of(others.begin(), others.end(), [&](const c10::IValue& other) {
    if (!other.isTensor() || !other.toTensor().defined()) return false;
    return !other.toTensor().is_same(tensor) && other.toTensor().is_alias_of(tensor);
  });
}

// A result without a gradient may be a view of a tensor that no caller can see. Turns it into a tensor of its own.
void forget_hidden_bases(std::vector<c10::IValue>& results, const std::vector<c10::IValue>& inputs) {
  for (const c10::IValue& result : std::vector<c10::IValue>(results)) {
    const at::Tensor tensor = result.isTensor() ? result.toTensor() : at::Tensor();
    if (!tensor.defined() || !tensor.is_view()) continue;
    if (!shares_memory(tensor, inputs) && !shares_memory(tensor, results)) forget_base(tensor, results);
  }
}

}  // namespace

AotBackwards::AotBackwards(const capture::JointGraph& joint, const capture::JointPartition& partition,
                           std::optional<CapturedPart> part)
    : joint_(joint), part_(std::move(part)), saved_names_(saved_names(partition)) {
  std::vector<std::size_t> saved(saved_names_.size());
  std::iota(saved.begin(), saved.end(), std::size_t{0});
  first_ = std::make_unique<AotBackward>(AotBackward{graph::Interpreter(partition.backward), std::move(saved),
                                                     joint.tangents, partition.gradient_tangents});
}

const AotBackward& AotBackwards::for_tangents(const std::vector<at::Tensor>& tangents) {
  const std::vector<capture::Tangent> forms = forms_of(tangents, joint_.tangents);
  if (!part_ || forms.empty() || forms == joint_.tangents) return *first_;
  const std::lock_guard lock(mutex_);
  if (!others_.contains(forms)) others_.emplace(forms, record(forms));
  const auto& other = others_.at(forms);
  TORCH_CHECK(
      other != nullptr || forms.size() == joint_.tangents.size() || first_hook(*part_->module) == nullptr,
      "aot_eager: a compiled function has captured hooks, and some of its results got no gradient; aot_eager cannot "
      "record such a backward. Compile the function with the back end 'eager'");
  return other != nullptr ? *other : *first_;
}

bool AotBackwards::has_path_to(std::size_t input) const {
  const auto leads_to = [input](const auto& tangents) { return input < tangents.size() && !tangents[input].empty(); };
  return leads_to(joint_.leading_tangents) || leads_to(first_->gradient_tangents);
}

std::size_t AotBackwards::recorded() const noexcept {
  return 1 + static_cast<std::size_t>(std::count_if(others_.begin(), others_.end(),
                                                    [](const auto& other) { return other.second != nullptr; }));
}

std::unique_ptr<AotBackward> AotBackwards::record(const std::vector<capture::Tangent>& tangents) const {
  if (checks_facts_in_backward(joint_)) return nullptr;
  const at::AutoGradMode with_gradients(true);
  const std::size_t guards = guards_of(part_->shapes);
  capture::JointGraph again;
  try {
    again = capture::capture_joint(part_->module, part_->example_inputs, part_->shapes, &tangents);
  } catch (const capture::FakeError&) {
    return nullptr;
  } catch (const capture::SharedInputChanges&) {
    return nullptr;
  } catch (const capture::NoRecordedBackward&) {
    return nullptr;
  } catch (const shapes::ShapeError&) {
    return nullptr;
  }
  if (guards_of(part_->shapes) != guards || !has_same_forward(again)) return nullptr;
  const capture::JointPartition partition = capture::partition_joint(again);
  std::vector<std::size_t> saved;
  for (const std::string& name : saved_names(partition)) {
    const auto found = std::find(saved_names_.begin(), saved_names_.end(), name);
    if (found == saved_names_.end()) return nullptr;
    saved.push_back(static_cast<std::size_t>(found - saved_names_.begin()));
  }
  return std::make_unique<AotBackward>(AotBackward{graph::Interpreter(partition.backward), std::move(saved),
                                                   again.tangents, partition.gradient_tangents});
}

// A recorded backward finds its saved values by the names of the forward's nodes, so both recordings must have the same
// operators in the forward.
bool AotBackwards::has_same_forward(const capture::JointGraph& again) const {
  const auto operators_of = [](const capture::JointGraph& joint) {
    std::map<std::string, std::string> targets;
    for (const graph::Node& node : joint.module->graph()) {
      if (&node == joint.backward_begin) break;
      if (is_of_forward(node)) targets.emplace(node.name(), node.target());
    }
    return targets;
  };
  return operators_of(joint_) == operators_of(again);
}

AotProgram::AotProgram(const capture::JointGraph& joint, const capture::JointPartition& partition, std::string name,
                       std::optional<CapturedPart> part)
    : name_(std::move(name)),
      forward_span_("forward of " + name_),
      backward_span_("backward of " + name_),
      forward_(partition.forward),
      views_(interpreter_of(joint.views)),
      of_hooks_(part ? saved_by_hooks(partition, joint.values, *part->module) : std::vector<bool>()),
      backwards_(partition.backward != nullptr ? std::make_unique<AotBackwards>(joint, partition, std::move(part))
                                               : nullptr),
      values_(joint.values),
      saved_tensors_(partition.saved_tensors),
      outputs_(joint.outputs),
      changed_inputs_(joint.changed_inputs) {}

std::vector<c10::IValue> AotProgram::call(const std::vector<c10::IValue>& inputs) const {
  const bool differentiate =
      backwards_ != nullptr && at::GradMode::is_enabled() && std::any_of(inputs.begin(), inputs.end(), requires_grad);
  const comm::SpanScope span(forward_span_);
  std::vector<c10::IValue> values = differentiate ? run_and_record(inputs) : run_below(forward_, inputs);
  values.resize(values_);
  forget_hidden_bases(values, inputs);
  if (differentiate) copy_back(inputs, values);
  return outputs_of(inputs, std::move(values));
}

std::vector<c10::IValue> AotProgram::run_backward(const AotBackward& backward, std::vector<c10::IValue> inputs) const {
  const comm::SpanScope span(backward_span_);
  return run_below(backward.graph, std::move(inputs));
}

std::vector<c10::IValue> AotProgram::run_and_record(const std::vector<c10::IValue>& inputs) const {
  const auto node = make_aot_node(shared_from_this(), inputs);
  std::vector<c10::IValue> working = inputs;
  for (const capture::ChangedInput& changed : changed_inputs_) {
    const BelowAutograd below;
    working[changed.input] = copy_with_layout(inputs[changed.input].toTensor());
  }
  std::vector<c10::IValue> results = run_below(forward_, std::move(working));
  node->record(results, values_);
  return results;
}

void AotProgram::copy_back(const std::vector<c10::IValue>& inputs, const std::vector<c10::IValue>& values) const {
  for (const capture::ChangedInput& changed : changed_inputs_) {
    const at::AutoGradMode grad_mode(changed.under_autograd);
    inputs[changed.input].toTensor().copy_(values[changed.value].toTensor());
  }
}

std::vector<c10::IValue> AotProgram::outputs_of(const std::vector<c10::IValue>& inputs,
                                                std::vector<c10::IValue> values) const {
  std::vector<c10::IValue> views;
  if (views_) {
    std::vector<c10::IValue> sources = inputs;
    sources.insert(sources.end(), values.begin(), values.end());
    views = views_->run(std::move(sources));
  }
  std::vector<c10::IValue> outputs;
  outputs.reserve(outputs_.size());
  for (const capture::GraphOutput& output : outputs_) {
    using Kind = capture::GraphOutput::Kind;
    const auto& from = output.kind == Kind::Input ? inputs : output.kind == Kind::View ? views : values;
    outputs.push_back(from[output.index]);
  }
  return outputs;
}

}  // namespace rehearse::compiler
