// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/capture/versions.h>

#include <rehearse_internal/operators/own_operator.h>

namespace rehearse {
namespace {

const c10::VariableVersion& counter_of(const at::Tensor& tensor, const char* call) {
  TORCH_CHECK_VALUE(!tensor.is_inference(), call, ": the tensor was made in inference mode, and has no version");
  return tensor.unsafeGetTensorImpl()->version_counter();
}

c10::SymInt version_kernel(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(counter_of(tensor, "version").current_version());
}

void set_version_kernel(const at::Tensor& tensor, c10::SymInt version) {
  TORCH_CHECK_VALUE(version >= 0, "set_version: version is ", version, "; it must be 0 or more");
  c10::VariableVersion counter = counter_of(tensor, "set_version");  // shares its number with the tensor
  counter.set_version(version.guard_int(__FILE__, __LINE__));
}

}  // namespace

c10::SymInt version(const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.defined(), "version: the tensor is undefined");
  static const auto op =
      operators::own_operator("version", "(Tensor self) -> SymInt", &version_kernel, operators::Derivative::none);
  return op.call(tensor);
}

void set_version(const at::Tensor& tensor, const c10::SymInt& version) {
  TORCH_CHECK_VALUE(tensor.defined(), "set_version: the tensor is undefined");
  static const auto op = operators::own_operator("set_version", "(Tensor(a!) self, SymInt version) -> ()",
                                                 &set_version_kernel, operators::Derivative::none);
  op.call(tensor, version);
}

}  // namespace rehearse
