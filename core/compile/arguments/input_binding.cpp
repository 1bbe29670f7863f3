// SPDX-License-Identifier: BSD-3-Clause
#include "compile/arguments/input_binding.h"

#include <cstring>

namespace rehearse::compiler {
namespace {

bool is_number(const at::Tensor& tensor) {
  return tensor.defined() && tensor.dim() == 0 && tensor.device().is_cpu() && tensor.layout() == at::kStrided &&
         !tensor.requires_grad();
}

bool same_tensor(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b)) return true;
  if (!is_number(a) || !is_number(b) || a.scalar_type() != b.scalar_type()) return false;
  return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.element_size()) == 0;  // NaN, too, is itself
}

}  // namespace

bool InputBinding::operator==(const InputBinding& other) const {
  return kind == other.kind && index == other.index && dimension == other.dimension &&
         same_tensor(tensor, other.tensor);
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
  return {.kind = InputBinding::Kind::Captured, .tensor = input.tensor};
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

}  // namespace rehearse::compiler
