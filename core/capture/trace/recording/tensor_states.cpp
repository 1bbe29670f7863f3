// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recording/tensor_states.h"

#include <algorithm>

#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/capture/errors.h>

namespace rehearse::capture {
namespace {

std::size_t hooks_on(const at::Tensor& tensor) {
  const auto* autograd = torch::autograd::impl::get_autograd_meta(tensor);
  if (autograd == nullptr) return 0;
  const std::size_t listed = autograd->cpp_hooks_list_ ? autograd->cpp_hooks_list_->size() : 0;
  return autograd->hooks_.size() + listed + (autograd->post_acc_grad_hooks_ ? 1 : 0);
}

// Avoids LibTorch's warning about gradients of tensors that are no leaves.
at::Tensor gradient_of(const at::Tensor& tensor) {
  const auto* autograd = torch::autograd::impl::get_autograd_meta(tensor);
  return autograd == nullptr ? at::Tensor() : autograd->grad_;
}

}  // namespace

void TensorStates::note(const at::Tensor& tensor, const std::string& name) {
  if (!known_.insert(tensor.unsafeGetTensorImpl()).second) return;
  renew(states_.emplace_back(State{.tensor = tensor, .name = name}));
}

void TensorStates::renew(State& state) {
  state.requires_grad = state.tensor.requires_grad();
  state.gradient = gradient_of(state.tensor);
  state.hooks = hooks_on(state.tensor);
}

void TensorStates::renew() {
  for (State& state : states_) renew(state);
}

bool TensorStates::requires_grad_changed() const {
  return std::ranges::any_of(states_,
                             [](const State& state) { return state.tensor.requires_grad() != state.requires_grad; });
}

void TensorStates::restore() {
  for (State& state : states_) {
    if (state.tensor.requires_grad() != state.requires_grad && !torch::autograd::impl::grad_fn_unsafe(state.tensor)) {
      state.tensor.set_requires_grad(state.requires_grad);
    }
    if (!gradient_of(state.tensor).is_same(state.gradient)) state.tensor.mutable_grad() = state.gradient;
  }
}

void TensorStates::check() const {
  for (const State& state : states_) {
    if (hooks_on(state.tensor) != state.hooks) {
      throw NotCapturable("a hook was registered on '" + state.name + "' inside of a captured function",
                          "Register it once, outside of the captured function.", {});
    }
    if (state.tensor.requires_grad() != state.requires_grad) {
      throw NotCapturable("whether '" + state.name + "' requires grad was changed inside of a captured function",
                          "Change it outside of the captured function.", {});
    }
    if (!gradient_of(state.tensor).is_same(state.gradient)) {
      throw NotCapturable("the gradient of '" + state.name + "' was replaced inside of a captured function",
                          "Call zero_grad() and the like outside of the captured function.", {});
    }
    if (state.gradient.defined() && found_.contains(state.gradient.unsafeGetTensorImpl())) {
      throw NotCapturable("the gradient of '" + state.name + "' is used inside of a captured function",
                          "It may be another tensor in the next call: give it as an argument.", {});
    }
  }
}

}  // namespace rehearse::capture
