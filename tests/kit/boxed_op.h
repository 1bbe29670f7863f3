// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <type_traits>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace rehearse::test {

// Calls an operator through its boxed form, with the given C++ types. LibTorch's own C++ types of parameters differ
// between its versions: the name of a group is a string or a c10::IValue. The result is a tensor (or tensors) of its
// own, not a reference.
template <class Signature>
class BoxedOp;

template <class Result, class... Parameters>
class BoxedOp<Result(Parameters...)> {
 public:
  explicit BoxedOp(const std::string& name) : op_(c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "")) {}

  std::decay_t<Result> call(Parameters... arguments) const {
    torch::jit::Stack stack = {c10::IValue(arguments)...};
    op_.callBoxed(stack);
    return stack.at(0).to<std::decay_t<Result>>();
  }

 private:
  c10::OperatorHandle op_;
};

}  // namespace rehearse::test
