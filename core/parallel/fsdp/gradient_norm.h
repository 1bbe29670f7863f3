// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "parallel/fsdp/shard_group.h"

namespace rehearse::parallel {

// The norm of all ranks' `sharded` tensors and of the `common` tensors, which every rank has as a whole. Returns a
// double on `device`, the same on every rank; 0 if no rank has a tensor. Blocks. All ranks must pass the same
// `norm_type` and `max_norm`: the name of the call contains both, and calls with different names are a mismatch.
// `max_norm` has no other use here.
at::Tensor norm_of_whole(const ShardGroup& group, const std::vector<at::Tensor>& sharded,
                         const std::vector<at::Tensor>& common, double norm_type, double max_norm, at::Device device);

// Multiplies the tensors by max_norm / norm if that is less than 1, as torch::nn::utils::clip_grad_norm_() does.
void scale_to_norm(const std::vector<at::Tensor>& tensors, const at::Tensor& norm, double max_norm);

}  // namespace rehearse::parallel
