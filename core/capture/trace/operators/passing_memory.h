// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace rehearse::capture {

// Whether the tensor's memory may be gone after the call although the tensor is kept: it neither owns it nor is it that
// of a static variable. For a real tensor.
bool has_passing_memory(const at::Tensor& tensor);

}  // namespace rehearse::capture
