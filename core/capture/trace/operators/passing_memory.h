// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace rehearse::capture {

// True if the memory of a real tensor may be freed after the call although the tensor lives on, because the tensor does
// not own its memory. False for the memory of static variables and of devices.
bool has_passing_memory(const at::Tensor& tensor);

}  // namespace rehearse::capture
