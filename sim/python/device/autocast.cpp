// SPDX-License-Identifier: BSD-3-Clause
// torch.autocast("cuda"): the lists of operators that LibTorch has for GPUs.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "python/device/cuda.h"

// The macros of LibTorch name types of its namespace without it, and versions name different ones.
namespace at::autocast {
namespace {

void register_lists(torch::Library& m) {
#define REHEARSE_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define REHEARSE_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define REHEARSE_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define REHEARSE_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(REHEARSE_LOWER_PRECISION)
  AT_FORALL_FP32(REHEARSE_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(REHEARSE_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(REHEARSE_PROMOTE)
#undef REHEARSE_LOWER_PRECISION
#undef REHEARSE_FP32
#undef REHEARSE_FP32_SET_OPT_DTYPE
#undef REHEARSE_PROMOTE
}

}  // namespace
}  // namespace at::autocast

namespace rehearse::python {
namespace {

at::Tensor refuse_binary_cross_entropy(const at::Tensor& /*input*/, const at::Tensor& /*target*/,
                                       const std::optional<at::Tensor>& /*weight*/, std::int64_t /*reduction*/) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast: use "
              "binary_cross_entropy_with_logits or BCEWithLogitsLoss");
}

}  // namespace

void register_autocast(torch::Library& aten) {
  at::autocast::register_lists(aten);
  aten.impl("binary_cross_entropy", refuse_binary_cross_entropy);
}

}  // namespace rehearse::python
