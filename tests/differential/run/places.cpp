// SPDX-License-Identifier: BSD-3-Clause
#include "differential/run/places.h"

#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/functional/loss.h>

namespace rehearse_test::differential {
namespace {

using Code = std::function<void()>;

struct Running : torch::autograd::Function<Running> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x, const Code& code) {
    code();
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0], at::Tensor()};
  }
};

at::Tensor leaf() { return at::ones({1, 2}, at::kDouble).requires_grad_(); }

void run_in_hook(const Code& code) {
  const at::AutoGradMode with_gradients(true);
  const at::Tensor y = leaf() * 1;
  y.register_hook([&](const at::Tensor&) { code(); });
  y.sum().backward();
}

void run_in_loss(const Code& code) {
  const at::Tensor x = leaf();
  Code once = code;
  torch::nn::functional::triplet_margin_with_distance_loss(
      x, x, x,
      torch::nn::functional::TripletMarginWithDistanceLossFuncOptions().distance_function(
          [&](const at::Tensor& a, const at::Tensor& b) {
            if (const Code now = std::exchange(once, nullptr)) now();
            return at::pairwise_distance(a, b);
          }));
}

}  // namespace

void run_at(Place place, const std::function<void()>& code) {
  const Code in_mode = [&, grad = at::GradMode::is_enabled()] {
    const at::AutoGradMode mode(grad);
    code();
  };
  switch (place) {
    case Place::Plain:
      return code();
    case Place::Hook:
      return run_in_hook(in_mode);
    case Place::Function:
      return static_cast<void>(Running::apply(leaf(), in_mode));
    case Place::Loss:
      return run_in_loss(in_mode);
  }
}

}  // namespace rehearse_test::differential
