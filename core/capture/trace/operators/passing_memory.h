// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace rehearse::capture {

// True if the memory of a real tensor may be freed after the call although the tensor lives on: the tensor does not own
// its memory, and the memory is not that of a static variable.
bool has_passing_memory(const at::Tensor& tensor);

}  // namespace rehearse::capture
