// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <unordered_set>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

namespace rehearse::capture {

// Notes which fakes will be ZeroTensors when the graph runs. The gradient of sgn() is one: it has no memory. Autograd
// adds another gradient to it out of place, but adds two ordinary gradients in place. A fake does not show the
// difference.
class ZeroTensors {
 public:
  void note(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments, c10::ArrayRef<c10::IValue> results);
  // The operator to record for a call of `op`: `op` itself, or add() in place of add_() if that would write to a
  // ZeroTensor.
  c10::OperatorHandle callable(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) const;

 private:
  bool has(const c10::IValue& value) const;

  std::unordered_set<std::uint64_t> zeros_;  // by fake_id()
};

}  // namespace rehearse::capture
