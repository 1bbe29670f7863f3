// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <ATen/core/stack.h>

#include "capture/fake/call/operator_call.h"

namespace rehearse::capture {

// A tensor without data and with the geometry of `fake`, for LibTorch's Meta kernels.
at::Tensor meta_like(const at::Tensor& fake);

// Other tensors in place of a call's fakes, so that a kernel may be run to see what it gives. A fake that stands twice
// among the arguments has one stand-in.
class StandIns {
 public:
  explicit StandIns(std::function<at::Tensor(const at::Tensor& fake)> make) : make_(std::move(make)) {}

  // The arguments with stand-ins, and with `device` where a device is asked for. Memory is not pinned.
  torch::jit::Stack arguments_of(const Call& call, c10::Device device);

 private:
  at::Tensor of(const at::Tensor& fake);
  c10::IValue of(const c10::IValue& value);

  std::function<at::Tensor(const at::Tensor&)> make_;
  std::vector<std::pair<const c10::TensorImpl*, at::Tensor>> made_;
};

}  // namespace rehearse::capture
