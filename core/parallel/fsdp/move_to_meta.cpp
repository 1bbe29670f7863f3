// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/parallel/move_to_meta.h>

#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include "checks/values/module_tensors.h"

namespace rehearse {

void move_to_meta(torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  const auto parameters = checks::parameters_of(module);
  for (const auto& each : parameters) {
    TORCH_CHECK_VALUE(each.tensor.is_leaf(), "move_to_meta(): parameter \"", each.name,
                      "\" is computed from other tensors. Register what it is computed from.");
  }
  for (const auto& each : parameters) {
    const at::Tensor& tensor = each.tensor;
    if (tensor.is_meta()) continue;
    tensor.mutable_grad().reset();
    const auto options = tensor.options().device(at::kMeta).requires_grad(false);
    const at::Tensor there = at::empty_strided(tensor.sizes(), tensor.strides(), options);
    tensor.unsafeGetTensorImpl()->shallow_copy_from(there.getIntrusivePtr());
  }
}

}  // namespace rehearse
