// SPDX-License-Identifier: BSD-3-Clause
#include "compile/aot/aot_node.h"

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/libtorch/nodes.h>

#include "compile/aot/tangent_form.h"

namespace rehearse::compiler {
namespace {

namespace autograd = torch::autograd;

at::Tensor in_form(const at::Tensor& tensor, const capture::TangentForm& form) {
  const auto strides = strides_of(form, tensor.sizes());
  return at::empty_strided(tensor.sizes(), strides, tensor.options()).copy_(tensor);
}

}  // namespace

void forget_base(const at::Tensor& view, std::vector<c10::IValue>& results) {
  if (!view.is_view()) return;
  c10::TensorImpl* const impl = view.unsafeGetTensorImpl();
  const at::Tensor after(impl->shallow_copy_and_detach(impl->version_counter(), true));
  for (c10::IValue& result : results) {
    if (result.isTensor() && result.toTensor().is_same(view)) result = after;
  }
}

AotNode::AotNode(std::shared_ptr<const AotProgram> program, autograd::edge_list&& edges)
    : OwningNode(std::move(edges)), program_(std::move(program)) {}

libtorch::PtrTo<AotNode> make_aot_node(std::shared_ptr<const AotProgram> program,
                                       const std::vector<c10::IValue>& inputs) {
  // An input from which no result is computed gets no edge. With an edge, autograd would call the input's node and
  // hooks without a gradient.
  autograd::edge_list edges;
  edges.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor tensor = inputs[i].isTensor() ? inputs[i].toTensor() : at::Tensor();
    const bool has_edge = tensor.defined() && tensor.requires_grad() && program->backwards().has_path_to(i);
    edges.push_back(has_edge ? autograd::impl::gradient_edge(tensor) : autograd::Edge());
  }
  return libtorch::make_node<AotNode>(std::move(program), std::move(edges));
}

void AotNode::record(std::vector<c10::IValue>& results, std::size_t values) {
  const auto self = libtorch::pointer_to(*this);
  for (const capture::Tangent& tangent : program_->backwards().first().tangents) {
    forget_base(at::Tensor(results[tangent.value].toTensor()), results);
    autograd::set_history(results[tangent.value].toTensor(), self);
  }
  const std::size_t numbers = values + program_->saved_tensors();
  tensors_.reserve(program_->saved_tensors());
  of_hooks_.resize(program_->saved_tensors());
  for (std::size_t i = values; i < numbers; ++i) {
    const at::Tensor tensor = results[i].toTensor();
    if (program_->is_of_hook(i - values)) {
      of_hooks_[i - values] = tensor;
      tensors_.emplace_back();
      continue;
    }
    const bool is_output = tensor.defined() && tensor.requires_grad() && tensor.grad_fn() == self;
    tensors_.emplace_back(tensor, is_output);
  }
  numbers_.assign(results.begin() + static_cast<std::ptrdiff_t>(numbers), results.end());
}

void AotNode::release_variables() {
  const std::lock_guard<std::mutex> lock(mutex_);
  release_saved();
}

void AotNode::release_saved() {
  for (autograd::SavedVariable& tensor : tensors_) tensor.reset_data();
  of_hooks_.clear();
  released_ = true;
}

void AotNode::drop_members() noexcept {
  tensors_.clear();
  of_hooks_.clear();
  numbers_.clear();
}

std::vector<c10::IValue> AotNode::unpack(const std::vector<std::size_t>& saved) {
  const std::lock_guard<std::mutex> lock(mutex_);
  TORCH_CHECK(!released_, autograd::ERR_BACKWARD_TWICE);
  std::vector<c10::IValue> values;
  values.reserve(saved.size() + num_inputs());
  for (const std::size_t i : saved) {
    if (i >= tensors_.size()) {
      values.push_back(numbers_[i - tensors_.size()]);
    } else {
      values.emplace_back(of_hooks_[i].defined() ? of_hooks_[i] : tensors_[i].unpack(getptr()));
    }
  }
  // Release the saved values before the backward runs. Otherwise all of them would live until its last operator.
  if (!autograd::get_current_graph_task_keep_graph()) release_saved();
  return values;
}

autograd::variable_list AotNode::run(autograd::variable_list&& tangents) {
  // Does not unpack the saved values if no gradient needs them: unpacking throws if one was changed.
  if (std::none_of(tangents.begin(), tangents.end(), [](const at::Tensor& each) { return each.defined(); })) {
    return autograd::variable_list(num_outputs());
  }
  const AotBackward& backward = program_->backwards().for_tangents(tangents);
  std::vector<c10::IValue> inputs = unpack(backward.saved);
  std::vector<bool> defined;
  const auto& values = program_->backwards().first().tangents;
  std::size_t next = 0;
  for (const capture::Tangent& wanted : backward.tangents) {
    while (values[next].value != wanted.value) ++next;
    defined.push_back(tangents[next].defined());
    at::Tensor tangent = defined.back() ? std::move(tangents[next]) : input_metadata(next).zeros_like();
    // The gradient of sgn() is a ZeroTensor without memory, and the graph may write to its tangents.
    if (tangent._is_zerotensor()) tangent = tangent.clone();
    inputs.emplace_back(has_form(tangent, wanted.form) ? std::move(tangent) : in_form(tangent, wanted.form));
  }
  tangents.clear();
  std::vector<c10::IValue> results = program_->run_backward(backward, std::move(inputs));
  autograd::variable_list gradients(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& reached_by = backward.gradient_tangents[i];
    const bool has_one = std::any_of(reached_by.begin(), reached_by.end(), [&](std::size_t t) { return defined[t]; });
    if (has_one && results[i].isTensor()) gradients[i] = std::move(results[i]).toTensor();
  }
  return gradients;
}

autograd::variable_list AotNode::apply(autograd::variable_list&& tangents) {
  const bool differentiable = at::GradMode::is_enabled();
  const at::NoGradGuard no_grad;
  autograd::variable_list gradients = run(std::move(tangents));
  if (!differentiable) return gradients;
  const auto error =
      libtorch::make_node<autograd::Error>("aot_eager records a backward once: the gradients of " + program_->name() +
                                           " cannot be differentiated again. The back end 'eager' can");
  for (at::Tensor& gradient : gradients) {
    if (!gradient.defined()) continue;
    gradient = gradient.variable_data();  // it may be a tangent, whose own history must stay
    autograd::set_history(gradient, error);
  }
  return gradients;
}

}  // namespace rehearse::compiler
