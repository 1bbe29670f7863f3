// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

#include <rehearse/comm/functional.h>

// A tensor whose collective may still be in flight. It waits for the collective when it is first used as a tensor, like
// torch.distributed's AsyncCollectiveTensor.
//
//   const rehearse::functional::AsyncTensor sum = rehearse::functional::all_reduce_async(x, ctx.group());
//   const at::Tensor squares = x * x;  // while the ranks reduce
//   return squares + sum;              // waits
//
// An AsyncTensor converts to a tensor wherever LibTorch takes one: `sum + 1`, `at::relu(sum)`. To call a member of
// at::Tensor, write `sum.wait().sizes()`. Compiled functions accept and return it, too. There the wait is a node of the
// graph at the first use; guards cover whether the tensor is pending, and its sizes are guarded like any tensor's.
//
// Blocking: launching a collective does not wait; the first use does. If nobody waits, the report has the same remark
// as for any other call that nobody waited for. Fibers, threads: as the group. Ownership: copies share the tensor, and
// each copy waits at most once. Errors: as in functional.h, and c10::NotImplementedError for an input that requires a
// gradient while grad mode is on, because a gradient cannot wait.
namespace rehearse::functional {

// `Tensor` is always at::Tensor. It is a template argument so that argument-dependent lookup finds LibTorch's
// operators.
template <std::same_as<at::Tensor> Tensor>
class Pending {
 public:
  // `launched`: the output of an operator of _c10d_functional. Waiting for a tensor that no collective fills returns at
  // once.
  explicit Pending(Tensor launched) : tensor_(std::move(launched)) {}

  const Tensor& wait() const {
    if (std::exchange(is_pending_, false)) wait_tensor(tensor_);
    return tensor_;
  }
  operator const Tensor&() const { return wait(); }

  // True until this object has waited. A copy may have waited before.
  bool is_pending() const noexcept { return is_pending_; }

  template <class Visit>
  friend void visit_fields(Pending& pending, Visit&& visit) {
    visit("tensor", pending.tensor_);
    visit("is_pending", pending.is_pending_);
  }

 private:
  Tensor tensor_;
  mutable bool is_pending_ = true;
};

using AsyncTensor = Pending<at::Tensor>;

// As the functions without _async, along dimension 0 and without gradients. The caller must not change the input until
// the result has been waited for.
AsyncTensor all_reduce_async(const at::Tensor& input, const ProcessGroup& group, const std::string& reduce_op = "sum");
AsyncTensor all_gather_tensor_async(const at::Tensor& input, const ProcessGroup& group);
AsyncTensor reduce_scatter_tensor_async(const at::Tensor& input, const ProcessGroup& group,
                                        const std::string& reduce_op = "sum");

}  // namespace rehearse::functional
