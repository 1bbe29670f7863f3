// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace rehearse::operators {

// What autograd makes of an operator.
enum class Derivative {
  by_its_calls,  // that of the operators that its kernel calls
  none,
};

// Adds `rehearse::<name><signature>` to LibTorch's dispatcher, once for each name in a process, and returns it. It
// stays registered when the process exits, because the dispatcher may be gone before us.
c10::OperatorHandle register_operator(const std::string& name, const std::string& signature, torch::CppFunction kernel,
                                      Derivative derivative);

// The same with a kernel that is a function. Keep what it returns in a static variable:
//   static const auto op = own_operator("version", "(Tensor self) -> SymInt", &version_kernel, Derivative::none);
template <class Signature>
c10::TypedOperatorHandle<Signature> own_operator(const std::string& name, const std::string& signature,
                                                 Signature* kernel, Derivative derivative) {
  return register_operator(name, signature, torch::CppFunction(kernel), derivative).template typed<Signature>();
}

}  // namespace rehearse::operators
