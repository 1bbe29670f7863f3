// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

// Collectives that return new tensors and have gradients: torch.distributed._functional_collectives for C++. They go
// through the dispatcher to LibTorch's operators _c10d_functional::* and _c10d_functional_autograd::*, so that whatever
// traces operators sees them.
//
//   auto whole = rehearse::functional::all_gather_tensor(shard, ctx.group());  // [n * rows, ...]
//   loss(whole).backward();                                                    // shard.grad(): summed over ranks
//
// The group is found by its name in the registry of the calling rank, in backward too. Any registered
// c10d::ProcessGroup will do.
//
// Blocking: each call waits for its result, and so does its gradient in backward. To overlap communication and
// computation use <rehearse/comm/async_tensor.h>, whose results wait when they are first used.
// Fibers, threads: as the group. Ownership: results are new tensors; inputs are not changed.
// Devices, dtypes: those of the group's collective. Inputs need not be contiguous.
// Errors: c10::ValueError for sizes, dimensions and roots that do not fit, naming them; c10d's own for an unknown
// reduce_op or group, and those of the group's collective.
//
// reduce_op: "sum", "avg", "product", "min", "max", "band", "bor", "bxor", as in Python. Gradients exist for "sum" and
// "avg"; asking for that of another one throws c10::NotImplementedError in the forward call.
namespace rehearse::functional {

using ProcessGroup = c10::intrusive_ptr<c10d::ProcessGroup>;

// The reduction of all ranks' inputs, which have the same sizes. Gradient: the same reduction of the ranks' gradients.
at::Tensor all_reduce(const at::Tensor& input, const ProcessGroup& group, const std::string& reduce_op = "sum");

// All ranks' inputs, which have the same sizes, one after the other along `gather_dim` (negative: from the last).
// Gradient: reduce_scatter_tensor(), summed.
at::Tensor all_gather_tensor(const at::Tensor& input, const ProcessGroup& group, std::int64_t gather_dim = 0);

// The reduction of all ranks' inputs, cut into equal parts along `scatter_dim`: part r for rank r. Gradient:
// all_gather_tensor(), divided by the number of ranks for "avg".
at::Tensor reduce_scatter_tensor(const at::Tensor& input, const ProcessGroup& group,
                                 const std::string& reduce_op = "sum", std::int64_t scatter_dim = 0);

// Part s of the result, of output_splits[s] rows, is what rank s had in its part for this rank, of input_splits[this]
// rows. Along dimension 0; both empty: equal parts. Gradient: the same backwards.
at::Tensor all_to_all_single(const at::Tensor& input, const ProcessGroup& group,
                             std::vector<std::int64_t> output_splits = {}, std::vector<std::int64_t> input_splits = {});

// The input of rank `root` of the group. Gradient: the sum of all ranks' gradients on the root, zero elsewhere.
at::Tensor broadcast(const at::Tensor& input, const ProcessGroup& group, int root = 0);

// Waits for what an operator of _c10d_functional has launched, and returns it.
at::Tensor wait_tensor(const at::Tensor& tensor);

}  // namespace rehearse::functional
