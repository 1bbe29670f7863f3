// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace rehearse::capture {

// From now on grad() and mutable_grad() of the fake throw NotCapturable in captured code: whether an argument has a
// gradient, and which one, no guard tells. `source`: the argument's name. For real tensors that the code finds by
// itself TensorImpl::grad() does the same, which the source file defines (docs/decisions/0018).
void refuse_gradient_of(const at::Tensor& fake, std::string source);

}  // namespace rehearse::capture
