// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
#include <rehearse_internal/libtorch/nodes.h>

#include "capture/trace/recording/recording.h"

namespace rehearse::capture {

// Runs the rest of a call whose capture has ended. Operators run eagerly on the real tensors for which the fakes stand.
class EagerRest {
 public:
  using ValueOf = std::function<c10::IValue(const Segment::Source&)>;

  // `alive`: the fakes that the code holds.
  EagerRest(Recording& recording, const std::vector<LiveValue>& alive, const ValueOf& value_of);
  // Turns each fake that the code holds into its real tensor. A fake stays a fake if it stands for an input, or if an
  // input or another fake has the same real tensor. Call it once.
  void make_real(const std::vector<LiveValue>& alive, const ValueOf& value_of);

  // Replaces the arguments by the results. If the operator changes the layout or history of an argument, updates the
  // argument's fake to match.
  void call(const c10::OperatorHandle& op, torch::jit::Stack& arguments) const;

  // Throws NotCapturable for a fake without a real tensor, and shapes::DataDependentError for a symbol without a value.
  c10::IValue real_value(const c10::IValue& value) const;
  at::Tensor real_tensor(const at::Tensor& tensor) const;
  // For results of an eager region. A region may return a real tensor for which the code holds a fake, or a view of
  // one. Autograd tracks a write through one object of a tensor, so the code gets that fake, or a view of it.
  std::vector<at::Tensor> as_held(const std::vector<at::Tensor>& results) const;
  // The fakes, other than those of inputs, that make_real() left as fakes, with the real tensors for which they stand.
  const std::vector<std::pair<WeakTensor, at::Tensor>>& stand_ins() const noexcept { return stand_ins_; }

 private:
  // Returns the fake that became this real tensor, or the tensor itself.
  at::Tensor handle_of(const at::Tensor& real) const;
  void renew(const at::Tensor& tensor) const;
  void renew_bases() const;
  void lend_history_of(const at::Tensor& fake, const at::Tensor& real) const;
  at::Tensor with_history(const at::Tensor& fake) const;  // the real tensor, not detached; throws NotCapturable

  Recording& recording_;
  std::unordered_map<std::uint64_t, at::Tensor> real_;    // by fake_id()
  std::map<const c10::TensorImpl*, WeakTensor> handles_;  // by real tensor: the fake that became it
  std::vector<std::pair<WeakTensor, at::Tensor>> stand_ins_;
  mutable std::vector<libtorch::NodePtr> accumulators_;  // for leaves among the inputs
};

}  // namespace rehearse::capture
