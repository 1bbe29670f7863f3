// SPDX-License-Identifier: BSD-3-Clause
#include "capture/fake/call/operator_call.h"

#include <algorithm>

namespace rehearse::capture {

bool has_symbols(const at::Tensor& tensor) {
  return tensor.defined() && tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

bool has_symbols(const c10::IValue& value) {
  if (value.isTensor()) return has_symbols(value.toTensor());
  if (value.isSymInt()) return value.toSymInt().is_symbolic();
  if (value.isSymFloat() || value.isSymBool()) return true;
  if (value.isIntList() || value.isDoubleList() || value.isBoolList()) return false;
  if (!value.isList()) return false;
  const auto items = value.toListRef();
  return std::any_of(items.begin(), items.end(), [](const c10::IValue& item) { return has_symbols(item); });
}

bool has_symbols(const Call& call) {
  return std::any_of(call.arguments.begin(), call.arguments.end(),
                     [](const c10::IValue& value) { return has_symbols(value); });
}

c10::Device device_of(const Call& call) {
  const auto& index = call.facts.device_argument;
  if (index && call.arguments[*index].isDevice()) return call.arguments[*index].toDevice();
  // A tensor without dimensions may stay on the CPU while the other arguments are on a device.
  std::optional<c10::Device> first, first_with_dimensions;
  for (const c10::IValue& value : call.arguments) {
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      if (!first) first = tensor.device();
      if (!first_with_dimensions && tensor.dim() > 0) first_with_dimensions = tensor.device();
    });
  }
  return first_with_dimensions.value_or(first.value_or(c10::Device(c10::kCPU)));
}

}  // namespace rehearse::capture
