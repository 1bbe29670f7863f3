// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse::capture {

// Handles questions about autograd for which LibTorch has no hook: grad(), mutable_grad() and requires_grad(). The
// source file defines these functions of TensorImpl (docs/decisions/0018). Captured code can reach real tensors that
// are no arguments (parameters, globals). For these, grad() and mutable_grad() end the capture or throw NotCapturable,
// and requires_grad() is also true if captured code gave the tensor a history by an operator that is recorded but has
// not run yet.

// From now on, grad() and mutable_grad() of the fake throw NotCapturable in captured code, because no guard checks an
// argument's gradient. `source`: the argument's name.
void refuse_gradient_of(const at::Tensor& fake, std::string source);

// True if captured code gave this real tensor a history by an operator that is recorded but has not run yet.
bool begins_a_history(const at::TensorBase& real);

}  // namespace rehearse::capture
