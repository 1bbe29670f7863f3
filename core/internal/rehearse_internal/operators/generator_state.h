// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace rehearse::operators {

// These two functions read and set the state of a device's default generator. While the calling fiber's code is being
// captured, they call operators of LibTorch's dispatcher, rehearse::generator_state(Device) -> Tensor and
// rehearse::set_generator_state(Tensor, Device). The capture records these operators, and the graph reads and sets the
// generator of the rank that runs it.
at::Tensor generator_state(c10::Device device);
void set_generator_state(const at::Tensor& state, c10::Device device);

}  // namespace rehearse::operators
