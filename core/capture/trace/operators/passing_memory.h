// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace rehearse::capture {

// True if a real tensor does not own its memory, as after from_blob() without a deleter. Such memory may be gone when
// the captured graph runs, although the tensor lives on. False for the memory of static variables and of devices.
bool has_passing_memory(const at::Tensor& tensor);

}  // namespace rehearse::capture
