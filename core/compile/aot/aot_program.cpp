// SPDX-License-Identifier: BSD-3-Clause
#include "compile/aot/aot_program.h"

#include <algorithm>
#include <utility>

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <rehearse/comm/span_log.h>

#include "compile/aot/aot_node.h"
#include "compile/aot/captured_hooks.h"

namespace rehearse::compiler {
namespace {

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
