// SPDX-License-Identifier: BSD-3-Clause
#include "warm_up.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

namespace rehearse::real {

void warm_up_devices(int devices) {
  for (int device = 0; device < devices; ++device) {
    const at::Device where(at::kCUDA, static_cast<at::DeviceIndex>(device));
    const c10::DeviceGuard guard(where);
    const auto weight = at::ones({2, 2}, at::TensorOptions(where)).set_requires_grad(true);
    at::mm(weight, weight).sum().backward();
    static_cast<void>(weight.grad().cpu());
  }
}

}  // namespace rehearse::real
