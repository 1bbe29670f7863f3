// SPDX-License-Identifier: BSD-3-Clause
#include "capture/fake/infer/stand_ins.h"

#include <ATen/core/List.h>

namespace rehearse::capture {

at::Tensor StandIns::of(const at::Tensor& fake) {
  if (!fake.defined()) return fake;
  for (const auto& [impl, made] : made_) {
    if (impl == fake.unsafeGetTensorImpl()) return made;
  }
  return made_.emplace_back(fake.unsafeGetTensorImpl(), make_(fake)).second;
}

c10::IValue StandIns::of(const c10::IValue& value) {
  if (value.isTensor()) return of(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& item : value.toTensorVector()) list.push_back(of(item));
    return list;
  }
  if (!value.isOptionalTensorList()) return value;
  c10::List<std::optional<at::Tensor>> list;
  for (const std::optional<at::Tensor> item : value.toOptionalTensorList()) {
    list.push_back(item ? std::optional(of(*item)) : std::nullopt);
  }
  return list;
}

torch::jit::Stack StandIns::arguments_of(const Call& call, c10::Device device) {
  torch::jit::Stack stack;
  stack.reserve(call.arguments.size());
  for (const c10::IValue& value : call.arguments) stack.push_back(of(value));
  if (const auto index = call.facts.device_argument) {
    stack[*index] = device;
    const std::size_t pin_memory = *index + 1;
    if (pin_memory < stack.size() && stack[pin_memory].isBool()) stack[pin_memory] = c10::IValue();
  }
  return stack;
}

}  // namespace rehearse::capture
