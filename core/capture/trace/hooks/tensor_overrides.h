// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse::capture {

// Handles questions about autograd for which LibTorch has no hook: grad(), mutable_grad() and requires_grad(). The
// source file defines these functions of TensorImpl (docs/decisions/0018). For a real tensor that captured code reaches
// without an argument (a parameter, a global), grad() and mutable_grad() end the capture or throw NotCapturable. For
// such a tensor, requires_grad() answers as the tensor's fake does, because the code may have given the tensor a
// history by an operator that only the graph runs.

// From now on, grad() and mutable_grad() of the fake throw NotCapturable in captured code, because no guard checks an
// argument's gradient. `source`: the argument's name.
void refuse_gradient_of(const at::Tensor& fake, std::string source);

// True if captured code reached this real tensor without an argument, and gave it a history that only the graph will
// produce.
bool begins_a_history(const at::TensorBase& real);

}  // namespace rehearse::capture
