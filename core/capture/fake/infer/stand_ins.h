// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <ATen/core/stack.h>

#include "capture/fake/call/operator_call.h"

namespace rehearse::capture {

// A Meta tensor with the geometry of `fake`.
at::Tensor meta_like(const at::Tensor& fake);

// Replaces the fakes of a call with other tensors, so that a kernel can run on them. A fake that occurs twice among the
// arguments gets one stand-in.
class StandIns {
 public:
  explicit StandIns(std::function<at::Tensor(const at::Tensor& fake)> make) : make_(std::move(make)) {}

  // The arguments with stand-ins, and with `device` as the device argument. Clears the argument pin_memory.
  torch::jit::Stack arguments_of(const Call& call, c10::Device device);

 private:
  at::Tensor of(const at::Tensor& fake);
  c10::IValue of(const c10::IValue& value);

  std::function<at::Tensor(const at::Tensor&)> make_;
  std::vector<std::pair<const c10::TensorImpl*, at::Tensor>> made_;
};

}  // namespace rehearse::capture
