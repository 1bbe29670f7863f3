// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace rehearse::operators {

// How autograd differentiates an operator.
enum class Derivative {
  by_its_calls,  // through the operators that its kernel calls
  none,
};

// Registers `rehearse::<name><signature>` with LibTorch's dispatcher and returns the operator. Call it once per name
// and process. The operator stays registered when the process exits, because the dispatcher may be destroyed before our
// static objects.
c10::OperatorHandle register_operator(const std::string& name, const std::string& signature, torch::CppFunction kernel,
                                      Derivative derivative);

// The same for a kernel that is a function. Keep the result in a static variable:
//   static const auto op = own_operator("version", "(Tensor self) -> SymInt", &version_kernel, Derivative::none);
template <class Signature>
c10::TypedOperatorHandle<Signature> own_operator(const std::string& name, const std::string& signature,
                                                 Signature* kernel, Derivative derivative) {
  return register_operator(name, signature, torch::CppFunction(kernel), derivative).template typed<Signature>();
}

}  // namespace rehearse::operators
