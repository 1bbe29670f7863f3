// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

#include <rehearse/comm/functional.h>

// A tensor whose collective may still be on its way, and which waits for it when somebody first uses it as a tensor:
// torch.distributed's AsyncCollectiveTensor for C++.
//
//   const rehearse::functional::AsyncTensor sum = rehearse::functional::all_reduce_async(x, ctx.group());
//   const at::Tensor squares = x * x;  // while the ranks reduce
//   return squares + sum;              // waits
//
// Where LibTorch takes a tensor it is one: `sum + 1`, `at::relu(sum)`. Members of a tensor are those of `sum.wait()`.
// It is an argument and a result of compiled functions as well. There the wait is a node of the graph, at the first
// use; whether it is still pending is guarded, its sizes are as those of a tensor.
//
// Blocking: launching a collective does not wait, the first use does. If nobody ever waits, the report has the remark
// that it has for each call in flight. Fibers, threads: as the group. Ownership: copies share the tensor, and each
// waits once. Errors: as the functions of functional.h. c10::NotImplementedError for an input that requires a gradient,
// where grad mode is on: no gradient can wait.
namespace rehearse::functional {

// `Tensor`: at::Tensor. As an argument of the template it makes C++ find LibTorch's operators.
template <std::same_as<at::Tensor> Tensor>
class Pending {
 public:
  // `launched`: what an operator of _c10d_functional gave. A tensor that no call is to fill is there at once.
  explicit Pending(Tensor launched) : tensor_(std::move(launched)) {}

  const Tensor& wait() const {
    if (std::exchange(is_pending_, false)) wait_tensor(tensor_);
    return tensor_;
  }
  operator const Tensor&() const { return wait(); }

  // Whether nobody has waited by this object.
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

// The same as the functions without _async, along dimension 0, and without a gradient. The input must not be changed
// before somebody has waited.
AsyncTensor all_reduce_async(const at::Tensor& input, const ProcessGroup& group, const std::string& reduce_op = "sum");
AsyncTensor all_gather_tensor_async(const at::Tensor& input, const ProcessGroup& group);
AsyncTensor reduce_scatter_tensor_async(const at::Tensor& input, const ProcessGroup& group,
                                        const std::string& reduce_op = "sum");

}  // namespace rehearse::functional
