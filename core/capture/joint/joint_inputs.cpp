// SPDX-License-Identifier: BSD-3-Clause
#include "capture/joint/joint_inputs.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse/graph/errors.h>
#include <rehearse_internal/libtorch/nodes.h>

namespace rehearse::capture {
namespace {

// The autograd node at which the gradients of an input arrive. Here the backward of the joint graph ends.
struct InputEnd : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { return {}; }
  std::string name() const override { return "InputOfJointGraph"; }
};

}  // namespace

JointInputs::JointInputs(const graph::GraphModule& part, const std::vector<c10::IValue>& examples,
                         JointRecorder& recorder) {
  const std::vector<graph::Node*> placeholders = part.graph().placeholders();
  if (placeholders.size() != examples.size()) {
    throw graph::GraphError("", "example_inputs",
                            "there must be " + std::to_string(placeholders.size()) +
                                ", one for each placeholder, and " + std::to_string(examples.size()) + " were given");
  }
  std::map<const c10::StorageImpl*, at::Tensor> of_storage;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    c10::IValue value = examples[i];
    if (value.isTensor() && value.toTensor().defined()) {
      const at::Tensor& example = examples[i].toTensor();
      if (!is_fake(example)) {
        throw graph::GraphError(placeholders[i]->name(), "example_inputs", "is a real tensor, and must be a fake one");
      }
      at::Tensor& sharing = of_storage[example.storage().unsafeGetStorageImpl()];
      value = add_tensor(example, sharing);
      if (!sharing.defined()) sharing = value.toTensor();
    }
    nodes_.push_back(&recorder.add_input(*placeholders[i], value));
    values_.push_back(std::move(value));
  }
}

bool JointInputs::has_new_history(std::size_t input) const {
  const auto position = std::find(positions_.begin(), positions_.end(), input);
  if (position == positions_.end()) return true;
  const at::Tensor& target = differentiable_[static_cast<std::size_t>(position - positions_.begin())];
  return torch::autograd::impl::gradient_edge(values_[input].toTensor()) !=
         torch::autograd::impl::gradient_edge(target);
}

at::Tensor JointInputs::add_tensor(const at::Tensor& example, const at::Tensor& alias_of) {
  TensorSpec spec = spec_of(example);
  const bool requires_grad = std::exchange(spec.requires_grad, false);
  at::Tensor input = make_fake(spec, alias_of);
  if (!requires_grad) return input;
  const auto end = libtorch::make_node<InputEnd>();
  const auto index = end->add_input_metadata(input);
  torch::autograd::impl::set_gradient_edge(input, {end, index});
  at::Tensor target = make_fake(spec);  // keeps its edge even if operators write to `input`
  torch::autograd::impl::set_gradient_edge(target, {end, index});
  differentiable_.push_back(std::move(target));
  positions_.push_back(values_.size());
  return input;
}

}  // namespace rehearse::capture
