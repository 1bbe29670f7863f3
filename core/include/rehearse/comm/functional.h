// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

// Collectives that return new tensors and have gradients: torch.distributed._functional_collectives for C++. They call
// LibTorch's operators _c10d_functional::* and _c10d_functional_autograd::* through the dispatcher, so that tracers see
// them.
//
//   auto whole = rehearse::functional::all_gather_tensor(shard, ctx.group());  // [n * rows, ...]
//   loss(whole).backward();                                                    // shard.grad(): summed over ranks
//
// Any registered c10d::ProcessGroup works. The operators find the group by its name in the registry of the calling
// rank, in backward too.
//
// Blocking: each call waits for its result, and in backward it waits for its gradient. To overlap communication and
// computation use <rehearse/comm/async_tensor.h>, whose results wait at their first use.
// Fibers, threads: as the group.
// Ownership: results are new tensors; inputs are not changed.
// Devices, dtypes: as the group's collective. Inputs need not be contiguous.
// Errors: c10::ValueError for a null group, and for sizes and roots that do not fit, with their values; c10::IndexError
// for a dimension that the input does not have; c10d's own errors for an unknown reduce_op or group; the errors of the
// group's collective.
//
// reduce_op: "sum", "avg", "product", "min", "max", "band", "bor", "bxor", as in Python. Gradients exist for "sum" and
// "avg"; for other values the forward call throws c10::NotImplementedError if the input requires a gradient.
namespace rehearse::functional {

using ProcessGroup = c10::intrusive_ptr<c10d::ProcessGroup>;

// Reduces the inputs of all ranks, which must have the same sizes. Gradient: the same reduction of the ranks'
// gradients.
at::Tensor all_reduce(const at::Tensor& input, const ProcessGroup& group, const std::string& reduce_op = "sum");

// Concatenates the inputs of all ranks along `gather_dim` (negative: counted from the last). The inputs must have the
// same sizes. Gradient: reduce_scatter_tensor() with "sum".
at::Tensor all_gather_tensor(const at::Tensor& input, const ProcessGroup& group, std::int64_t gather_dim = 0);

// Reduces the inputs of all ranks and cuts the result into equal parts along `scatter_dim`: rank r gets part r.
// Gradient: all_gather_tensor(), for "avg" divided by the number of ranks.
at::Tensor reduce_scatter_tensor(const at::Tensor& input, const ProcessGroup& group,
                                 const std::string& reduce_op = "sum", std::int64_t scatter_dim = 0);

// Sends input_splits[s] rows of the input to each rank s and returns the rows received from all ranks in order of rank,
// output_splits[s] of them from rank s. Splits dimension 0. If both lists are empty, the parts are equal. Gradient: the
// same exchange in the opposite direction.
at::Tensor all_to_all_single(const at::Tensor& input, const ProcessGroup& group,
                             std::vector<std::int64_t> output_splits = {}, std::vector<std::int64_t> input_splits = {});

// Returns the input of rank `root` of the group. Gradient: the sum of all ranks' gradients on the root, zero on other
// ranks.
at::Tensor broadcast(const at::Tensor& input, const ProcessGroup& group, int root = 0);

// Waits for the collective that fills `tensor`, an output of an operator of _c10d_functional, and returns the tensor.
at::Tensor wait_tensor(const at::Tensor& tensor);

}  // namespace rehearse::functional
