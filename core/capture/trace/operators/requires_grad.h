// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/stack.h>

#include "capture/trace/operators/treatment.h"

namespace rehearse::capture {

// Marks the results that would require grad in eager mode: grad mode is on, an argument requires grad, the operator has
// a derivative, and the result is floating-point or complex. If grad mode is off, marks only views of arguments that
// require grad (if the operator has a derivative). An argument that is written in place never loses its mark. An
// operator on lists may return nothing (`_foreach_add_`). Then an item that it writes gets the mark in two cases: an
// item with the same index in any list requires grad, or an argument that is no list does.
void set_requires_grad(const Treatment& treatment, const torch::jit::Stack& arguments,
                       const torch::jit::Stack& results);

}  // namespace rehearse::capture
