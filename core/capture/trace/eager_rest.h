// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <rehearse/capture/segments.h>

#include "capture/trace/recording/inputs.h"

namespace rehearse::capture {

// The rest of a call whose capture has ended: operators run as they come, each fake standing for its real tensor.
class EagerRest {
 public:
  using ValueOf = std::function<c10::IValue(const Segment::Source&)>;

  EagerRest(Inputs& inputs, const std::vector<LiveValue>& alive, ValueOf value_of);

  // Its arguments are replaced by its results.
  void call(const c10::OperatorHandle& op, torch::jit::Stack& arguments) const;

  // Throws NotCapturable for a fake that stands for nothing, and a symbol that no input brings.
  c10::IValue real_value(const c10::IValue& value) const;
  at::Tensor real_tensor(const at::Tensor& tensor) const;

 private:
  Inputs& inputs_;
  std::unordered_map<std::uint64_t, at::Tensor> real_;  // by fake_id()
};

}  // namespace rehearse::capture
