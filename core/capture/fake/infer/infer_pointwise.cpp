// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/ones.h>

#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/exec/fiber_local.h>

#include "capture/fake/call/operator_call.h"
#include "capture/fake/call/result_layout.h"
#include "capture/fake/infer/below_autograd.h"
#include "capture/fake/infer/fixed_generator.h"
#include "capture/fake/infer/infer.h"
#include "capture/fake/infer/stand_ins.h"

namespace rehearse::capture {
namespace {

struct KnownDtypes {
  std::map<std::string, std::vector<c10::ScalarType>> of;  // by key_of() of the call
};
const exec::FiberLocal<KnownDtypes> known_dtypes;

void append(std::string& key, const c10::IValue& value) {
  key += '|';
  if (value.isScalar() || value.isSymInt() || value.isSymFloat()) {
    key += value.isBool() ? 'b' : value.isDouble() || value.isSymFloat() ? 'd' : value.isComplexDouble() ? 'c' : 'i';
    if (value.isInt()) key += std::to_string(value.toInt());  // an argument of type dtype arrives as an integer
  } else if (value.isString()) {
    key += value.toStringRef();
  } else if (value.isNone()) {
    key += 'n';
  }
  for_each_tensor(value, [&](const at::Tensor& tensor) {
    key += std::to_string(static_cast<int>(tensor.scalar_type()));
    key += tensor.unsafeGetTensorImpl()->is_wrapped_number() ? 'w' : tensor.dim() == 0 ? 's' : 't';
  });
}

std::string key_of(const Call& call) {
  std::string key = call.facts.name + std::to_string(static_cast<int>(at::get_default_dtype_as_scalartype()));
  for (const c10::IValue& value : call.arguments) append(key, value);
  return key;
}

std::vector<c10::ScalarType> run_small(const Call& call) {
  BelowAutograd guard;
  const FixedGenerator no_draw(call.facts.is_random);
  const c10::Device device(c10::kCPU);
  StandIns stand_ins([&](const at::Tensor& fake) {
    const std::vector<std::int64_t> ones(static_cast<std::size_t>(fake.dim()), 1);
    at::Tensor made = at::ones(ones, at::TensorOptions(fake.scalar_type()).device(device));
    if (fake.unsafeGetTensorImpl()->is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
    return made;
  });
  torch::jit::Stack stack = stand_ins.arguments_of(call, device);
  for (c10::IValue& value : stack) {
    if (value.isSymInt()) value = c10::IValue(std::int64_t{1});
    if (value.isSymFloat()) value = c10::IValue(1.0);
  }
  call.facts.handle.callBoxed(stack);
  std::vector<c10::ScalarType> dtypes;
  for (const c10::IValue& result : stack) {
    for_each_tensor(result, [&](const at::Tensor& tensor) { dtypes.push_back(tensor.scalar_type()); });
  }
  return dtypes;
}

// The dtypes of an operator's result tensors, including those in lists, by LibTorch's own type promotion. Runs the
// kernel on tensors of one element with the call's dtypes, and caches the answer by the operator and by all arguments
// that may decide it (dtypes, types of numbers, strings). Use it only for operators that accept tensors of any size.
const std::vector<c10::ScalarType>& result_dtypes(const Call& call) {
  auto [found, is_new] = known_dtypes->of.try_emplace(key_of(call));
  if (is_new) {
    try {
      found->second = run_small(call);
    } catch (...) {
      known_dtypes->of.erase(found);
      throw;
    }
  }
  return found->second;
}

// These kernels make their result with at::empty_like(), which keeps the strides of a dense tensor even along
// dimensions of size 1. at::TensorIterator gives contiguous strides to the result of one contiguous tensor.
bool keeps_strides(const Call& call, const at::Tensor& operand) {
  const std::string& name = call.facts.name;
  if (name == "aten::abs") return operand.is_complex();
  if (name == "aten::isinf") return c10::isIntegralType(operand.scalar_type(), true);
  return name == "aten::deg2rad" || name == "aten::rad2deg" || name == "aten::frexp.Tensor" ||
         name == "aten::hardtanh" || name == "aten::nan_to_num" || name == "aten::relu6" ||
         name == "aten::_conj_physical";  // has the tag pointwise in some versions of LibTorch only
}

// Kernels that take a number as a second operand broadcast it, so they treat no tensor as contiguous.
bool iterates_with_number(const std::string& name) {
  if (name == "aten::deg2rad.out" || name == "aten::rad2deg.out") return true;
  if (name.starts_with("aten::pow.Tensor_Scalar")) return false;
  const std::size_t overload = name.find('.');
  return overload != std::string::npos &&
         (name.find("Scalar", overload) != std::string::npos || name.find("scalar", overload) != std::string::npos);
}

// These kernels give no strides to the result that they make.
bool gives_contiguous(const Call& call, const at::Tensor& operand) {
  const std::string& name = call.facts.name;
  if (name == "aten::angle") return operand.is_complex();
  if (name == "aten::nan_to_num.out") return c10::isIntegralType(operand.scalar_type(), true);
  return name == "aten::pow.Scalar" || name == "aten::pow.Scalar_out" || name == "aten::mvlgamma" ||
         name == "aten::mvlgamma.out";
}

bool has_contiguous_strides(const at::Tensor& tensor) {
  return equal_ints(tensor.sym_strides(), contiguous_strides(tensor.sym_sizes()));
}

// isinf() of complex numbers looks at the strided views of their real and imaginary parts, and then joins both results.
SymInts strides_of_parts(const at::Tensor& complex) {
  SymInts of_part;
  for (const c10::SymInt& stride : complex.sym_strides()) of_part.push_back(stride * 2);
  const SymInts sizes = complex.sym_sizes().vec();
  return iterated_strides(sizes, {iterated_strides(sizes, {of_part})});
}

}  // namespace

Layout pointwise_layout(const Call& call, std::vector<at::Tensor> operands) {
  const std::string& name = call.facts.name;
  // The kernels list these operands in the other order.
  if (name.starts_with("aten::threshold_backward") || name.starts_with("aten::leaky_relu_backward")) {
    std::swap(operands[0], operands[1]);
  }
  if (name == "aten::ldexp.Tensor" && operands[0].dim() < operands[1].dim() && !has_contiguous_strides(operands[1])) {
    throw UnknownShape(name, "its strides depend on how LibTorch computes the power", exec::CallSite::capture());
  }
  if (operands.size() != 1) return elementwise_layout(operands);
  const at::Tensor& operand = operands.front();
  const SymInts sizes = operand.sym_sizes().vec();
  if (gives_contiguous(call, operand)) return {sizes, contiguous_strides(sizes)};
  if (name == "aten::isinf" && operand.is_complex()) return {sizes, strides_of_parts(operand)};
  if (iterates_with_number(name)) return {sizes, iterated_strides(sizes, {operand.sym_strides().vec()})};
  if (keeps_strides(call, operand)) return {sizes, strides_like(operand, c10::MemoryFormat::Preserve)};
  return elementwise_layout(operands);
}

Outputs infer_pointwise(const Call& call) {
  std::vector<at::Tensor> operands;
  for (const c10::IValue& value : call.arguments) {
    for_each_tensor(value, [&](const at::Tensor& tensor) { operands.push_back(tensor); });
  }
  const Layout layout = pointwise_layout(call, std::move(operands));
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
