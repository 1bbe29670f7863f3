// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <unordered_set>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

namespace rehearse::capture {

// Which fakes are ZeroTensors when the graph runs: the gradient of sgn() is one, without memory, and autograd adds
// another gradient to it out of place, where it adds two others in place. A fake does not show it.
class ZeroTensors {
 public:
  void note(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments, c10::ArrayRef<c10::IValue> results);
  // What is to be called in the operator's place.
  c10::OperatorHandle callable(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) const;

 private:
  bool has(const c10::IValue& value) const;

  std::unordered_set<std::uint64_t> zeros_;  // by fake_id()
};

}  // namespace rehearse::capture
