// SPDX-License-Identifier: BSD-3-Clause
// What one process computes, for comparisons.
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse_internal/checks/unwatched.h>
#include <rehearse_internal/operators/lone_code.h>
#include <rehearse_internal/operators/seen_operators.h>

#include "checks/gradients.h"
#include "checks/values/tensor_difference.h"

namespace rehearse::checks {
namespace {

// Saves the buffers and the generator's state, and restores them after the computation.
class Untouched {
 public:
  Untouched(const ModelState& state, at::Generator generator) : generator_(std::move(generator)) {
    const at::NoGradGuard no_grad;
    generator_state_ = generator_.get_state();
    for (const auto& each : state.tensors()) {
      if (each.is_buffer && each.tensor.defined()) buffers_.emplace_back(each.tensor, each.tensor.detach().clone());
    }
  }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;
  ~Untouched() {
    const at::NoGradGuard no_grad;
    generator_.set_state(generator_state_);
    for (auto& [buffer, before] : buffers_) buffer.detach().copy_(before);
  }

 private:
  at::Generator generator_;
  at::Tensor generator_state_;
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;
};

bool is_trained(const NamedTensor& each) {
  return !each.is_buffer && each.tensor.defined() && each.tensor.is_leaf() && each.tensor.requires_grad();
}

}  // namespace

ModelState gradients_of(const ModelState& parameters) {
  std::vector<NamedTensor> gradients;
  for (const auto& each : parameters.tensors()) {
    if (is_trained(each) && !each.rows) gradients.push_back({each.name, each.tensor.grad(), false});
  }
  return gradients;
}

std::vector<Right> reference_gradients(const ModelState& state, at::Generator generator,
                                       const std::function<at::Tensor()>& loss) {
  const Untouched untouched(state, std::move(generator));
  const operators::UnseenOperators unseen;
  const at::AutoGradMode with_grad(true);
  std::vector<at::Tensor> parameters;
  for (const auto& each : state.tensors()) {
    if (is_trained(each)) parameters.push_back(each.tensor);
  }
  const operators::LoneCode lone("the function given to RankContext::check_gradients()");
  const auto value = loss();
  if (!value.defined() || value.numel() != 1 || !value.requires_grad()) {
    throw std::invalid_argument(
        "RankContext::check_gradients() was given a function whose result is no loss: it must return a tensor of one "
        "element, computed from the model's parameters");
  }
  if (parameters.empty()) return {};
  const auto gradients = torch::autograd::grad({value}, parameters, /*grad_outputs=*/{}, /*retain_graph=*/false,
                                               /*create_graph=*/false, /*allow_unused=*/true);
  std::vector<Right> all;
  for (const auto& gradient : gradients) all.push_back({gradient});
  return all;
}

std::vector<ReferencePart> reference_step(const ModelState& reference, at::Generator generator,
                                          const std::function<void()>& step) {
  std::vector<ReferencePart> parts;
  for (const auto& each : reference.tensors()) parts.push_back({each.name, copied(each.tensor), {}, {}});
  {
    const Untouched untouched({}, std::move(generator));
    const operators::UnseenOperators unseen;
    const at::AutoGradMode with_grad(true);
    const operators::LoneCode lone("the function given to RankContext::check_step()");
    step();
  }
  const Unwatched own;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& after = reference.tensors()[i].tensor;
    parts[i].change = wide(after) - wide(parts[i].before);
    parts[i].gradient = copied(after.grad());
  }
  return parts;
}

}  // namespace rehearse::checks
