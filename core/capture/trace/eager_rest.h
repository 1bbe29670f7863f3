// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <torch/csrc/autograd/function.h>

#include <rehearse/capture/segments.h>
#include <rehearse_internal/capture/left_fakes.h>

#include "capture/trace/recording/recording.h"

namespace rehearse::capture {

// The rest of a call whose capture has ended: operators run as they come, each fake standing for its real tensor.
class EagerRest {
 public:
  using ValueOf = std::function<c10::IValue(const Segment::Source&)>;

  // `alive`: what the code holds.
  EagerRest(Recording& recording, const std::vector<LiveValue>& alive, const ValueOf& value_of);
  // What the code holds and the call has not brought is from now on the real tensor itself, where no other object is.
  // Once.
  void make_real(const std::vector<LiveValue>& alive, const ValueOf& value_of);

  // Its arguments are replaced by its results. What it makes of an argument's sizes is seen on the fake, too.
  void call(const c10::OperatorHandle& op, torch::jit::Stack& arguments) const;

  // Throws NotCapturable for a fake that stands for nothing, and a symbol that no input brings.
  c10::IValue real_value(const c10::IValue& value) const;
  at::Tensor real_tensor(const at::Tensor& tensor) const;
  // What stays fake, and for what it stands.
  const std::vector<std::pair<WeakTensor, at::Tensor>>& stand_ins() const noexcept { return stand_ins_; }

 private:
  void renew(const at::Tensor& tensor) const;
  void renew_bases() const;
  void lend_history_of(const at::Tensor& fake, const at::Tensor& real) const;
  at::Tensor with_history(const at::Tensor& fake) const;  // the real tensor itself, or NotCapturable

  Recording& recording_;
  std::unordered_map<std::uint64_t, at::Tensor> real_;  // by fake_id()
  std::vector<std::pair<WeakTensor, at::Tensor>> stand_ins_;
  mutable std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;  // of leaves among the inputs
};

}  // namespace rehearse::capture
