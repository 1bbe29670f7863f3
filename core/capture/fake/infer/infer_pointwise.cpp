// SPDX-License-Identifier: BSD-3-Clause
#include "capture/fake/call/result_layout.h"
#include "capture/fake/infer/infer.h"
#include "capture/fake/infer/result_dtypes.h"

namespace rehearse::capture {

Outputs infer_pointwise(const Call& call) {
  std::vector<at::Tensor> operands;
  for (const c10::IValue& value : call.arguments) {
    for_each_tensor(value, [&](const at::Tensor& tensor) { operands.push_back(tensor); });
  }
  const Layout layout = elementwise_layout(operands);
  const c10::Device device = device_of(call);
  Outputs outputs;
  for (const c10::ScalarType dtype : result_dtypes(call)) {
    TensorSpec spec;
    spec.sizes = layout.sizes;
    spec.strides = layout.strides;
    spec.dtype = dtype;
    spec.device = device;
    outputs.push_back(std::move(spec));
  }
  return outputs;
}

}  // namespace rehearse::capture
