// SPDX-License-Identifier: BSD-3-Clause
#include "compile/aot/aot_node.h"

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

namespace rehearse::compiler {
namespace {

namespace autograd = torch::autograd;

// Strides of a tensor of these sizes that lies without gaps, its dimensions from the outermost to the innermost.
std::vector<std::int64_t> dense_strides(at::IntArrayRef sizes, const std::vector<std::int64_t>& dim_order) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  std::int64_t stride = 1;
  for (auto dim = dim_order.rbegin(); dim != dim_order.rend(); ++dim) {
    strides[static_cast<std::size_t>(*dim)] = stride;
    stride *= std::max<std::int64_t>(sizes[static_cast<std::size_t>(*dim)], 1);
  }
  return strides;
}

// Strides of dimensions that have one element say nothing.
bool lies_like(const at::Tensor& tensor, at::IntArrayRef strides) {
  if (tensor.numel() == 0) return true;
  for (std::size_t dim = 0; dim < strides.size(); ++dim) {
    if (tensor.sizes()[dim] != 1 && tensor.strides()[dim] != strides[dim]) return false;
  }
  return true;
}

// A result that is a view of something inside the program is a view of nothing that its caller can see.
void forget_base(c10::IValue& value, std::vector<c10::IValue>& results) {
  const at::Tensor before = value.toTensor();
  if (!before.is_view()) return;
  const at::Tensor after = before.variable_data();
  for (c10::IValue& result : results) {
    if (result.isTensor() && result.toTensor().is_same(before)) result = after;
  }
}

}  // namespace

AotNode::AotNode(std::shared_ptr<const AotProgram> program, autograd::edge_list&& edges)
    : Node(std::move(edges)), program_(std::move(program)) {}

std::shared_ptr<AotNode> make_aot_node(std::shared_ptr<const AotProgram> program,
                                       const std::vector<c10::IValue>& inputs) {
  autograd::edge_list edges;
  edges.reserve(inputs.size());
  for (const c10::IValue& input : inputs) {
    const bool has_edge = input.isTensor() && input.toTensor().defined() && input.toTensor().requires_grad();
    edges.push_back(has_edge ? autograd::impl::gradient_edge(input.toTensor()) : autograd::Edge());
  }
  return std::shared_ptr<AotNode>(new AotNode(std::move(program), std::move(edges)), autograd::deleteNode);
}

void AotNode::record(std::vector<c10::IValue>& results, std::size_t values) {
  const auto self = std::static_pointer_cast<AotNode>(getptr());
  for (const capture::Tangent& tangent : program_->tangents()) {
    forget_base(results[tangent.value], results);
    autograd::set_history(results[tangent.value].toTensor(), self);
  }
  const std::size_t numbers = values + program_->saved_tensors();
  tensors_.reserve(program_->saved_tensors());
  for (std::size_t i = values; i < numbers; ++i) {
    const at::Tensor tensor = results[i].toTensor();
    const bool is_output = tensor.defined() && tensor.requires_grad() && tensor.grad_fn() == self;
    tensors_.emplace_back(tensor, is_output);
  }
  numbers_.assign(results.begin() + static_cast<std::ptrdiff_t>(numbers), results.end());
}

void AotNode::release_variables() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (autograd::SavedVariable& tensor : tensors_) tensor.reset_data();
  released_ = true;
}

std::vector<c10::IValue> AotNode::unpack_saved() {
  const std::lock_guard<std::mutex> lock(mutex_);
  TORCH_CHECK(!released_, autograd::ERR_BACKWARD_TWICE);
  std::vector<c10::IValue> saved;
  saved.reserve(tensors_.size() + numbers_.size());
  for (const autograd::SavedVariable& tensor : tensors_) saved.emplace_back(tensor.unpack(getptr()));
  saved.insert(saved.end(), numbers_.begin(), numbers_.end());
  return saved;
}

at::Tensor AotNode::tangent_as_recorded(std::size_t index, const at::Tensor& tangent) const {
  if (!tangent.defined()) return input_metadata(index).zeros_like();
  const auto strides = dense_strides(tangent.sizes(), program_->tangents()[index].dim_order);
  if (lies_like(tangent, strides)) return tangent;
  return at::empty_strided(tangent.sizes(), strides, tangent.options()).copy_(tangent);
}

autograd::variable_list AotNode::apply(autograd::variable_list&& tangents) {
  std::vector<c10::IValue> inputs = unpack_saved();
  std::vector<bool> defined;
  for (std::size_t i = 0; i < tangents.size(); ++i) {
    defined.push_back(tangents[i].defined());
    const at::NoGradGuard no_grad;
    inputs.emplace_back(tangent_as_recorded(i, std::exchange(tangents[i], {})));
  }
  const bool differentiable = at::GradMode::is_enabled();
  const at::NoGradGuard no_grad;
  autograd::variable_list gradients = gradients_of(program_->run_backward(std::move(inputs)), defined);
  if (differentiable) {
    const auto error = std::make_shared<autograd::Error>("aot_eager records a backward once: the gradients of " +
                                                         program_->name() + " cannot be differentiated again");
    for (at::Tensor& gradient : gradients) {
      if (!gradient.defined()) continue;
      gradient = gradient.variable_data();  // it may be a tangent, whose history is its own
      autograd::set_history(gradient, error);
    }
  }
  return gradients;
}

autograd::variable_list AotNode::gradients_of(std::vector<c10::IValue> results, const std::vector<bool>& defined) {
  autograd::variable_list gradients(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& tangents = program_->gradient_tangents()[i];
    const bool has_one = std::any_of(tangents.begin(), tangents.end(), [&](std::size_t t) { return defined[t]; });
    if (has_one && results[i].isTensor()) gradients[i] = std::move(results[i]).toTensor();
  }
  return gradients;
}

}  // namespace rehearse::compiler
