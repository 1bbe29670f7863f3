// SPDX-License-Identifier: BSD-3-Clause
#include "compile/segments/branch_key.h"

#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse::compiler {
namespace {

std::string key_of_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return "no tensor";
  return fmt::format("{}[{}] strides [{}] on {}{}", c10::toString(tensor.scalar_type()),
                     fmt::join(tensor.sizes(), ", "), fmt::join(tensor.strides(), ", "), tensor.device().str(),
                     tensor.requires_grad() ? ", requires grad" : "");
}

}  // namespace

std::string key_of(const c10::IValue& number) {
  if (number.isBool()) return number.toBool() ? "true" : "false";
  if (number.isInt()) return std::to_string(number.toInt());
  if (number.isDouble()) return fmt::format("{}", number.toDouble());
  if (number.isComplexDouble()) {
    const c10::complex<double> complex = number.toComplexDouble();
    return fmt::format("{} + {}i", complex.real(), complex.imag());
  }
  throw std::logic_error("a read gave a " + number.tagKind());
}

std::string key_of(capture::RegionResult& result) {
  std::string key = result.constants();
  for (const at::Tensor& tensor : result.tensors()) key += (key.empty() ? "" : "; ") + key_of_tensor(tensor);
  return key;
}

}  // namespace rehearse::compiler
