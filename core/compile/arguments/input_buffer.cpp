// SPDX-License-Identifier: BSD-3-Clause
#include "compile/arguments/input_buffer.h"

namespace rehearse::compiler {
namespace {

bool holds(const c10::IValue& value, const at::Tensor& tensor) {
  return value.isTensor() && value.toTensor().unsafeGetTensorImpl() == tensor.unsafeGetTensorImpl();
}

}  // namespace

std::vector<c10::IValue> InputBuffer::take(const std::vector<InputBinding>& bindings, const LeafList& leaves) {
  std::vector<c10::IValue> inputs = std::exchange(inputs_, {});
  inputs.resize(bindings.size());
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    const InputBinding& binding = bindings[i];
    if (binding.kind == InputBinding::Kind::Captured && holds(inputs[i], binding.tensor)) continue;
    inputs[i] = value_of(binding, leaves, {});
  }
  return inputs;
}

void InputBuffer::give_back(std::vector<c10::IValue> inputs, const std::vector<InputBinding>& bindings) {
  if (inputs.size() != bindings.size()) return;  // the run consumed them
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    if (bindings[i].kind != InputBinding::Kind::Captured) inputs[i] = {};
  }
  inputs_ = std::move(inputs);
}

}  // namespace rehearse::compiler
