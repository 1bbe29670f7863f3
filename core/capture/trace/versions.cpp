// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/capture/versions.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "capture/fake/never_destroyed.h"

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
  c10::VariableVersion counter = counter_of(tensor, "set_version");  // it shares the number
  counter.set_version(version.guard_int(__FILE__, __LINE__));
}

void define_version_operators() {
  static const capture::NeverDestroyed<torch::Library> library([] {
    torch::Library made(torch::Library::FRAGMENT, "rehearse", std::nullopt, __FILE__, __LINE__);
    made.def("version(Tensor self) -> SymInt");
    made.impl("version", c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(version_kernel));
    made.impl("version", c10::DispatchKey::Autograd, torch::CppFunction::makeFallthrough());
    made.def("set_version(Tensor(a!) self, SymInt version) -> ()");
    made.impl("set_version", c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(set_version_kernel));
    made.impl("set_version", c10::DispatchKey::Autograd, torch::CppFunction::makeFallthrough());
    return made;
  });
}

c10::OperatorHandle find_version_operator(const char* name) {
  define_version_operators();
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

}  // namespace

c10::SymInt version(const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.defined(), "version: the tensor is undefined");
  static const auto op = find_version_operator("rehearse::version").typed<c10::SymInt(const at::Tensor&)>();
  return op.call(tensor);
}

void set_version(const at::Tensor& tensor, const c10::SymInt& version) {
  TORCH_CHECK_VALUE(tensor.defined(), "set_version: the tensor is undefined");
  static const auto op = find_version_operator("rehearse::set_version").typed<void(const at::Tensor&, c10::SymInt)>();
  op.call(tensor, version);
}

}  // namespace rehearse
