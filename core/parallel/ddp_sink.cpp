// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/ddp_sink.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <ATen/ops/clone.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>

#include <rehearse_internal/libtorch/nodes.h>

namespace rehearse::parallel {
namespace {

// Written as a node, because torch::autograd::Function takes no list of tensors. Gradients that the loss did not
// produce stay undefined, because the reducer distinguishes them from zeros.
class DdpSinkBackward : public torch::autograd::Node {
 public:
  explicit DdpSinkBackward(std::function<void()> on_backward) : on_backward_(std::move(on_backward)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    on_backward_();
    return std::move(gradients);
  }
  std::string name() const override { return "DDPSinkBackward"; }

 private:
  std::function<void()> on_backward_;
};

}  // namespace

void pass_through_sink(std::vector<at::Tensor>& outputs, std::function<void()> on_backward) {
  const auto sink = libtorch::make_node<DdpSinkBackward>(std::move(on_backward));
  for (auto& output : outputs) {
    if (!output.defined() || !output.grad_fn()) continue;
    at::Tensor passed;
    {
      const at::NoGradGuard no_grad;
      passed = output.clone();
    }
    sink->add_next_edge(torch::autograd::impl::gradient_edge(output));
    torch::autograd::create_gradient_edge(passed, sink);
    output = std::move(passed);
  }
}

}  // namespace rehearse::parallel
