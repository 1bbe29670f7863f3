// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/stack.h>

#include "capture/trace/operators/treatment.h"

namespace rehearse::capture {

// Marks the results that would require grad in eager mode: grad mode is on, an argument requires it, the operator has a
// derivative, and the result is floating-point or complex. What an in-place operator changes keeps its mark, and gets
// it where it gives no result (`_foreach_add_`: by what stands in the same place of each list).
void set_requires_grad(const Treatment& treatment, const torch::jit::Stack& arguments,
                       const torch::jit::Stack& results);

}  // namespace rehearse::capture
