// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/operators/collective_gradients.h>

#include <string>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <torch/csrc/autograd/function.h>
#include <torch/library.h>

#include <rehearse_internal/libtorch/nodes.h>

namespace rehearse::operators {
namespace {

using torch::autograd::variable_list;
using torch::jit::Stack;

c10::OperatorHandle plain(const std::string& name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(("_c10d_functional::" + name).c_str(), "");
}

at::Tensor call(const c10::OperatorHandle& op, Stack arguments) {
  op.callBoxed(arguments);
  return std::move(arguments.at(0)).toTensor();
}

// The gradient of a collective is another collective of the same group, which all ranks call.
class FunctionalBackward : public torch::autograd::Node {
 public:
  // `collective` takes the gradient, and then `rest`.
  FunctionalBackward(std::string collective, Stack rest)
      : collective_(std::move(collective)), op_(plain(collective_)), rest_(std::move(rest)) {}

  std::string name() const override { return "Functional<" + collective_ + ">"; }

  variable_list apply(variable_list&& gradients) override {
    at::Tensor& gradient = gradients[0];
    Stack arguments = {gradient.defined() ? gradient.contiguous() : input_metadata(0).zeros_like()};
    arguments.insert(arguments.end(), rest_.begin(), rest_.end());
    static const c10::OperatorHandle wait = plain("wait_tensor");
    return {call(wait, {call(op_, std::move(arguments))})};
  }

 private:
  const std::string collective_;
  const c10::OperatorHandle op_;
  const Stack rest_;
};

// `of`: the arguments of the forward call, which are (input, group_size, group), (input, reduce_op, group_size, group),
// or (input, output_splits, input_splits, group).
libtorch::NodePtr backward_of(const std::string& name, const Stack& of) {
  if (name == "all_gather_into_tensor")
    return libtorch::make_node<FunctionalBackward>("reduce_scatter_tensor", Stack{"sum", of[1], of[2]});
  if (name == "all_to_all_single")
    return libtorch::make_node<FunctionalBackward>("all_to_all_single", Stack{of[2], of[1], of[3]});
  TORCH_CHECK(of[1].toStringRef() == "sum", "Only sum reduce op is supported");
  return libtorch::make_node<FunctionalBackward>("all_gather_into_tensor", Stack{of[2], of[3]});
}

void run_with_gradient(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const std::string& qualified = op.schema().name();
  const std::string name = qualified.substr(qualified.rfind(':') + 1);
  Stack arguments = torch::jit::pop(*stack, op.schema().arguments().size());
  const at::Tensor input = arguments[0].toTensor();
  TORCH_CHECK_NOT_IMPLEMENTED(!input._fw_grad(/*level=*/0).defined(), qualified,
                              ": a collective has no forward-mode gradient");
  libtorch::NodePtr node;
  if (at::GradMode::is_enabled() && input.requires_grad()) {
    node = backward_of(name, arguments);
    node->set_next_edges(torch::autograd::collect_next_edges(input));
  }
  at::Tensor output;
  {
    const at::NoGradGuard no_grad;
    output = call(plain(name), std::move(arguments));
  }
  if (node) torch::autograd::create_gradient_edge(output, node);
  torch::jit::push(*stack, std::move(output));
}

}  // namespace

void register_collective_gradients() {
  static auto* const library = [] {
    auto* const made =  // never destroyed: the dispatcher may go before it
        new torch::Library(torch::Library::IMPL, "_c10d_functional_autograd", c10::DispatchKey::Autograd, __FILE__,
                           __LINE__);
    for (const char* name : {"all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single"}) {
      const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
          (std::string("_c10d_functional_autograd::") + name).c_str(), "");
      if (op.hasKernelForDispatchKey(c10::DispatchKey::Autograd)) continue;
      made->impl(name, torch::CppFunction::makeFromBoxedFunction<&run_with_gradient>());
    }
    return made;
  }();
  static_cast<void>(library);
}

}  // namespace rehearse::operators
