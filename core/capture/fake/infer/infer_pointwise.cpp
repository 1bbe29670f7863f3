// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "capture/fake/call/result_layout.h"
#include "capture/fake/infer/infer.h"
#include "capture/fake/infer/result_dtypes.h"

namespace rehearse::capture {
namespace {

// These kernels make their result with at::empty_like(), which keeps the strides of a dense tensor even along
// dimensions of size 1. at::TensorIterator gives contiguous strides to the result of one contiguous tensor.
bool keeps_strides(const Call& call, const at::Tensor& operand) {
  const std::string& name = call.facts.name;
  if (name == "aten::abs") return operand.is_complex();
  if (name == "aten::isinf") return !operand.is_floating_point();
  return name == "aten::frexp.Tensor" || name == "aten::hardtanh" || name == "aten::nan_to_num" ||
         name == "aten::relu6";
}

// These kernels iterate over the tensor and a number that is broadcast, so they treat no tensor as contiguous.
bool iterates_with_number(const Call& call) {
  const std::string& name = call.facts.name;
  return name == "aten::__lshift__.Scalar" || name == "aten::__rshift__.Scalar" ||
         name == "aten::floor_divide.Scalar" || name == "aten::remainder.Scalar_Tensor";
}

Layout layout_of(const Call& call, const std::vector<at::Tensor>& operands) {
  if (operands.size() != 1) return elementwise_layout(operands);
  const at::Tensor& operand = operands.front();
  const SymInts sizes = operand.sym_sizes().vec();
  if (call.facts.name == "aten::angle" && operand.is_complex()) return {sizes, contiguous_strides(sizes)};
  if (iterates_with_number(call)) return {sizes, iterated_strides(sizes, {operand.sym_strides().vec()})};
  if (keeps_strides(call, operand)) return {sizes, strides_like(operand, c10::MemoryFormat::Preserve)};
  return elementwise_layout(operands);
}

}  // namespace

Outputs infer_pointwise(const Call& call) {
  std::vector<at::Tensor> operands;
  for (const c10::IValue& value : call.arguments) {
    for_each_tensor(value, [&](const at::Tensor& tensor) { operands.push_back(tensor); });
  }
  const Layout layout = layout_of(call, operands);
  const c10::Device device = device_of(call);
  Outputs outputs;
  for (const c10::ScalarType dtype : result_dtypes(call)) {
    TensorSpec spec;
    spec.sizes = layout.sizes;
    spec.strides = layout.strides;
    spec.dtype = dtype;
    spec.device = device;
    outputs.push_back(std::move(spec));
  }
  return outputs;
}

}  // namespace rehearse::capture
