// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace rehearse::capture::test {

// opaque() of a function that multiplies by 5.
at::Tensor scaled_elsewhere(const at::Tensor& x);

}  // namespace rehearse::capture::test
