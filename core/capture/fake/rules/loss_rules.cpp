// SPDX-License-Identifier: BSD-3-Clause
// Rules for losses and their backwards. Reduction 0 is "none"; the other reductions give one number.
#include <ATen/native/TypeProperties.h>

#include "capture/fake/call/results.h"
#include "capture/fake/infer/infer.h"
#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {
namespace {

using c10::MemoryFormat;

std::vector<at::Tensor> first_two(const Call& call) { return {call.tensor(0), call.tensor(1)}; }

Outputs reduced_or_not(const Call& call, std::size_t reduction, const Layout& layout, c10::ScalarType dtype) {
  if (call.integer(reduction) != 0) return {result(call, SymInts{}, dtype)};
  return {result(call, layout, dtype)};
}

// loss(self, target, reduction, ...) for elementwise losses.
Outputs elementwise_loss(const Call& call) {
  const std::vector<at::Tensor> operands = first_two(call);
  return reduced_or_not(call, 2, elementwise_layout(operands), at::native::result_type(operands));
}

// huber_loss(self, target, reduction, delta): the kernel writes into a tensor like `self`.
Outputs huber_loss(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  Layout layout = elementwise_layout(first_two(call));
  if (equal_ints(self.sym_sizes(), layout.sizes)) layout.strides = strides_like(self, MemoryFormat::Preserve);
  return reduced_or_not(call, 2, layout, self.scalar_type());
}

// binary_cross_entropy(self, target, weight, reduction): the result has the input's layout.
Outputs cross_entropy_of_bits(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  elementwise_layout(first_two(call));
  if (call.integer(3) != 0) return {result(call, SymInts{}, self.scalar_type())};
  return {result_like(call, self, self.scalar_type())};
}

// binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction): the kernel computes in place, in the
// tensor `1 - target`.
Outputs cross_entropy_of_logits(const Call& call) {
  elementwise_layout(first_two(call));
  const at::Tensor& target = call.tensor(1);
  const SymInts sizes = target.sym_sizes().vec();
  const Layout layout{sizes, iterated_strides(sizes, {target.sym_strides().vec()})};
  return reduced_or_not(call, 4, layout, target.scalar_type());
}

// backward(grad_output, self, target, ...): a contiguous gradient for self. If the loss has broadcast self, the kernel
// resizes the gradient to the sizes of the loss, and autograd adds it up afterwards.
Outputs gradient_of_self(const Call& call) {
  const at::Tensor& self = call.tensor(1);
  const Layout layout = elementwise_layout({self, call.tensor(2), call.tensor(0)});
  if (!equal_ints(self.sym_sizes(), layout.sizes)) return {result(call, layout, self.scalar_type())};
  return {result_like(call, self, self.scalar_type(), MemoryFormat::Contiguous)};
}

Outputs gradient_as_self(const Call& call) {
  const at::Tensor& self = call.tensor(1);
  return {result_like(call, self, self.scalar_type())};
}

// nll_loss_forward(self, target, weight, reduction, ignore_index): the loss, and the sum of the weights.
Outputs nll_loss(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const at::Tensor& target = call.tensor(1);
  TORCH_CHECK(self.dim() == 1 || self.dim() == 2, "nll_loss: expected 1 or 2 dimensions, but got ", self.dim());
  if (self.dim() == 2) {
    TORCH_SYM_CHECK(self.sym_size(0).sym_eq(target.sym_size(0)),
                    "nll_loss: batch sizes of input and target differ: ", self.sym_sizes(), " and ",
                    target.sym_sizes());
  }
  const bool each = call.integer(3) == 0 && self.dim() == 2;
  const TensorSpec total = result(call, SymInts{}, self.scalar_type());
  return {each ? result(call, SymInts{self.sym_size(0)}, self.scalar_type()) : total, total};
}

Outputs nll_loss_2d(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const TensorSpec total = result(call, SymInts{}, self.scalar_type());
  if (call.integer(3) != 0) return {total, total};
  return {result(call, SymInts{self.sym_size(0), self.sym_size(2), self.sym_size(3)}, self.scalar_type()), total};
}

Outputs contiguous_gradient(const Call& call) {
  const at::Tensor& self = call.tensor(1);
  return {result_like(call, self, self.scalar_type(), MemoryFormat::Contiguous)};
}

constexpr std::pair<const std::string_view, Rule> kLossRules[] = {
    {"aten::mse_loss", elementwise_loss},
    {"aten::smooth_l1_loss", elementwise_loss},
    {"aten::huber_loss", huber_loss},
    {"aten::binary_cross_entropy", cross_entropy_of_bits},
    {"aten::binary_cross_entropy_with_logits", cross_entropy_of_logits},
    {"aten::mse_loss_backward", gradient_of_self},
    {"aten::smooth_l1_loss_backward", gradient_of_self},
    {"aten::huber_loss_backward", gradient_of_self},
    {"aten::binary_cross_entropy_backward", gradient_as_self},
    {"aten::nll_loss_forward", nll_loss},
    {"aten::nll_loss2d_forward", nll_loss_2d},
    {"aten::nll_loss_backward", contiguous_gradient},
    {"aten::nll_loss2d_backward", contiguous_gradient},
};

}  // namespace

RuleTable loss_rules() { return kLossRules; }

}  // namespace rehearse::capture
