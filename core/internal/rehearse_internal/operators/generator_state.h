// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace rehearse::operators {

// The state of a device's default generator. While the calling fiber's code is being captured, both functions call
// operators of LibTorch's dispatcher, which the capture records. The graph then reads and sets the generator of the
// rank that runs the graph.
at::Tensor generator_state(c10::Device device);
void set_generator_state(const at::Tensor& state, c10::Device device);

}  // namespace rehearse::operators
