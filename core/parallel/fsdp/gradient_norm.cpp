// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/gradient_norm.h"

#include <cmath>
#include <utility>

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

namespace rehearse::parallel {
namespace {

constexpr double kStability = 1e-6;  // as in PyTorch's clip_grad_norm_()

// The norm of a rank's own tensors; 0 if it has none. Always in double precision, because an all-reduce adds up the
// norms, and a rank without tensors does not know their dtype.
at::Tensor local_norm(const std::vector<at::Tensor>& tensors, double norm_type, at::Device device) {
  std::vector<at::Tensor> norms;
  for (const auto& each : tensors) {
    if (each.numel() > 0) norms.push_back(at::linalg_vector_norm(each, norm_type).to(at::kDouble));
  }
  if (norms.empty()) return at::zeros({}, at::TensorOptions(at::kDouble).device(device));
  return at::linalg_vector_norm(at::stack(norms), norm_type);
}

}  // namespace

at::Tensor norm_of_whole(const ShardGroup& group, const std::vector<at::Tensor>& sharded,
                         const std::vector<at::Tensor>& common, double norm_type, double max_norm, at::Device device) {
  const at::NoGradGuard no_grad;
  TORCH_CHECK_VALUE(norm_type > 0, "FSDP: clip_grad_norm_() was given norm_type ", norm_type,
                    "; it is a number above 0, or infinity");
  const bool takes_largest = std::isinf(norm_type);
  at::Tensor own = local_norm(sharded, norm_type, device);
  if (!takes_largest) own = own.pow(norm_type);
  if (group.size() > 1) {
    const auto what = fmt::format("gradient norm of type {}, at most {}", norm_type, max_norm);
    group.all_reduce_norm(own, takes_largest, what)->wait();
  }
  if (!takes_largest) own = own.pow(1 / norm_type);
  return at::linalg_vector_norm(at::stack({own, local_norm(common, norm_type, device)}), norm_type);
}

void scale_to_norm(const std::vector<at::Tensor>& tensors, const at::Tensor& norm, double max_norm) {
  if (tensors.empty()) return;
  const at::NoGradGuard no_grad;
  const at::Tensor factor = (max_norm / (norm + kStability)).clamp_max(1.0);
  for (const auto& each : tensors) each.mul_(factor.to(each.scalar_type()));
}

}  // namespace rehearse::parallel
