// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/operators/requires_grad.h"

#include <algorithm>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/ScalarType.h>

#include <rehearse_internal/capture/fake_tensor.h>

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

bool may_require_grad(const at::Tensor& tensor) {
  return c10::isFloatingType(tensor.scalar_type()) || c10::isComplexType(tensor.scalar_type());
}

void mark(const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined() && !tensor.requires_grad() && may_require_grad(tensor)) tensor.set_requires_grad(true);
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) mark(item);
  }
}

bool aliases_one_with_grad(const at::Tensor& tensor, const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& argument = value.toTensor();
    return argument.defined() && argument.requires_grad() && share_storage(argument, tensor);
  }
  if (!value.isTensorList()) return false;
  for (const at::Tensor& item : value.toTensorVector()) {
    if (aliases_one_with_grad(tensor, item)) return true;
  }
  return false;
}

// Even without grad mode, a view of a tensor that requires grad reports that it requires grad, too, although the view
// will get no gradient.
void mark_views(const c10::IValue& value, const c10::IValue& viewed) {
  if (value.isTensorList()) {
    for (const at::Tensor& item : value.toTensorVector()) mark_views(item, viewed);
  } else if (value.isTensor() && value.toTensor().defined() && aliases_one_with_grad(value.toTensor(), viewed)) {
    mark(value);
  }
}

// For operators on lists, which work item by item: looks at the item at `index` of each list, and at every argument
// that is no list.
bool any_requires_grad_at(const torch::jit::Stack& arguments, std::size_t index) {
  return std::any_of(arguments.begin(), arguments.end(), [index](const c10::IValue& argument) {
    if (!argument.isTensorList()) return any_requires_grad(argument);
    const auto items = argument.toListRef();
    return index < items.size() && any_requires_grad(items[index]);
  });
}

}  // namespace

void set_requires_grad(const Treatment& treatment, const torch::jit::Stack& arguments,
                       const torch::jit::Stack& results) {
  if (treatment.sets_requires_grad || !treatment.differentiable) return;
  if (!at::GradMode::is_enabled()) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!treatment.viewed[i]) continue;
      for (const c10::IValue& result : results) mark_views(result, arguments[i]);
    }
    return;
  }
  bool any = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    any = any || (treatment.gives_history[i] && any_requires_grad(arguments[i]));
  }
  if (!any) return;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (treatment.differentiable_results.empty() || treatment.differentiable_results.at(i)) mark(results[i]);
  }
}

std::vector<at::Tensor> written_with_grad(const Treatment& treatment, const torch::jit::Stack& arguments) {
  std::vector<at::Tensor> written;
  const auto add = [&](const c10::IValue& value, bool requires_grad) {
    if (requires_grad && may_require_grad(value.toTensor())) written.push_back(value.toTensor());
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!treatment.written[i]) continue;
    if (arguments[i].isTensor()) add(arguments[i], any_requires_grad(arguments[i]));
    if (!arguments[i].isTensorList()) continue;
    const auto items = arguments[i].toListRef();
    for (std::size_t index = 0; index < items.size(); ++index)
      add(items[index], any_requires_grad_at(arguments, index));
  }
  return written;
}

}  // namespace rehearse::capture
