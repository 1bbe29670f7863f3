// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/requires_grad.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/ScalarType.h>

namespace rehearse::capture {
namespace {

bool any_requires_grad(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor().defined() && value.toTensor().requires_grad();
  if (!value.isList()) return false;
  for (const c10::IValue& item : value.toListRef()) {
    if (any_requires_grad(item)) return true;
  }
  return false;
}

void mark(const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined() || tensor.requires_grad()) return;
    if (c10::isFloatingType(tensor.scalar_type()) || c10::isComplexType(tensor.scalar_type()))
      tensor.set_requires_grad(true);
  } else if (value.isTensorList()) {
    for (const at::Tensor& item : value.toTensorVector()) mark(item);
  }
}

}  // namespace

void set_requires_grad(const Treatment& treatment, const torch::jit::Stack& arguments,
                       const torch::jit::Stack& results) {
  if (treatment.sets_requires_grad) {
    if (treatment.name == "detach_") results.front().toTensor().set_requires_grad(false);
    return;
  }
  if (!treatment.differentiable || !at::GradMode::is_enabled()) return;
  bool any = false;
  for (const c10::IValue& argument : arguments) any = any || any_requires_grad(argument);
  if (!any) return;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (treatment.differentiable_results.empty() || treatment.differentiable_results.at(i)) mark(results[i]);
  }
}

}  // namespace rehearse::capture
