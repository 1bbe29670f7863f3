// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "capture/trace/operators/treatment.h"

namespace rehearse::capture {

// Marks the results that would require grad in eager mode: grad mode is on, an argument that gives a history (see
// Treatment) requires grad, the operator has a derivative, and the result is floating-point or complex. If grad mode is
// off, marks only views of arguments that require grad (if the operator has a derivative). A result may be an argument
// only if the schema says so: then the operator writes the argument, or the result has the argument's own history. An
// argument that is written in place never loses its mark.
void set_requires_grad(const Treatment& treatment, const torch::jit::Stack& arguments,
                       const torch::jit::Stack& results);

// The tensors that the operator writes and that require grad afterwards. A written item of a list does so in two cases:
// an item with the same index in any list requires grad, or an argument that is no list does.
std::vector<at::Tensor> written_with_grad(const Treatment& treatment, const torch::jit::Stack& arguments);

}  // namespace rehearse::capture
