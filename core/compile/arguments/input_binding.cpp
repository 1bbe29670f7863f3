// SPDX-License-Identifier: BSD-3-Clause
#include "compile/arguments/input_binding.h"

#include <cstring>

namespace rehearse::compiler {
namespace {

bool is_number(const at::Tensor& tensor) {
  return tensor.defined() && tensor.dim() == 0 && tensor.device().is_cpu() && tensor.layout() == at::kStrided &&
         !tensor.requires_grad();
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && tensor.device().is_cpu() && !tensor.requires_grad();
}

// A sharded parameter has elements, but no memory between two uses.
bool has_memory(const at::Tensor& tensor) { return tensor.storage().nbytes() > 0; }

bool same_form(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

bool same_contents(const at::Tensor& a, const at::Tensor& b) {
  if (!a.is_contiguous() || a.is_neg() != b.is_neg() || a.is_conj() != b.is_conj()) return false;
  return a.numel() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;  // NaN equals itself
}

bool same_tensor(const InputBinding& left, const InputBinding& right) {
  const at::Tensor& a = left.tensor;
  const at::Tensor& b = right.tensor;
  if (a.is_same(b)) return true;
  if (!is_plain(a) || !is_plain(b) || !same_form(a, b)) return false;
  const bool by_contents = left.is_made_inside || (is_number(a) && is_number(b));
  if (by_contents) return same_contents(a, b);
  return has_memory(a) && has_memory(b) && a.numel() > 0 && a.const_data_ptr() == b.const_data_ptr();
}

bool holds(const c10::IValue& value, const at::Tensor& tensor) {
  return value.isTensor() && value.toTensor().unsafeGetTensorImpl() == tensor.unsafeGetTensorImpl();
}

}  // namespace

bool InputBinding::operator==(const InputBinding& other) const {
  return kind == other.kind && (kind == Kind::Captured || index == other.index) &&
         (kind == Kind::Value || dimension == other.dimension) && is_made_inside == other.is_made_inside &&
         same_tensor(*this, other);
}

InputBinding binding_of(const capture::GraphInput& input, const CapturedLeaves& leaves) {
  using Kind = capture::GraphInput::Kind;
  switch (input.kind) {
    case Kind::Tensor:
      return {.kind = InputBinding::Kind::Tensor, .index = leaves.tensors.at(input.index)};
    case Kind::Int:
      return {.kind = InputBinding::Kind::Int, .index = leaves.ints.at(input.index)};
    case Kind::Size:
      return {.kind = InputBinding::Kind::Size, .index = leaves.tensors.at(input.index), .dimension = input.dim};
    case Kind::Captured:
      break;
  }
  return {.kind = InputBinding::Kind::Captured,
          .index = static_cast<std::uint32_t>(input.index),
          .tensor = input.tensor,
          .is_made_inside = input.is_made_inside};
}

c10::IValue value_of(const InputBinding& binding, const LeafList& leaves, const std::vector<c10::IValue>& values) {
  switch (binding.kind) {
    case InputBinding::Kind::Tensor:
      return *leaves[binding.index].tensor;
    case InputBinding::Kind::Int:
      return leaves[binding.index].sym_int->as_int_unchecked();
    case InputBinding::Kind::Size:
      return leaves[binding.index].tensor->size(binding.dimension);
    case InputBinding::Kind::Captured:
      return binding.tensor;
    case InputBinding::Kind::Value:
      break;
  }
  return values.at(binding.index);
}

std::vector<c10::IValue> values_of(const std::vector<InputBinding>& bindings, const LeafList& leaves,
                                   const std::vector<c10::IValue>& values) {
  std::vector<c10::IValue> found;
  found.reserve(bindings.size());
  for (const InputBinding& binding : bindings) found.push_back(value_of(binding, leaves, values));
  return found;
}

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
