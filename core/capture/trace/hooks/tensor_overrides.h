// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse::capture {

// What captured code asks tensors of autograd where no hook of LibTorch's is: grad(), mutable_grad(), requires_grad().
// The source file defines these functions of TensorImpl (docs/decisions/0018): for a real tensor that the code finds by
// itself the first two throw NotCapturable, and the last one answers as its fake does. The code may have given it a
// history by an operator that only the graph runs.

// From now on grad() and mutable_grad() of the fake throw NotCapturable in captured code: whether an argument has a
// gradient, and which one, no guard tells. `source`: the argument's name.
void refuse_gradient_of(const at::Tensor& fake, std::string source);

// Whether captured code has given the real tensor, which it found, a history that only the graph makes.
bool begins_a_history(const at::TensorBase& real);

}  // namespace rehearse::capture
