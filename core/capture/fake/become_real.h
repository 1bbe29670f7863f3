// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <rehearse_internal/libtorch/nodes.h>

namespace rehearse::capture {

// For a real tensor that user code never received, returns the tensor that user code holds in its place. Returns `real`
// itself if user code holds no such tensor.
using HandleOf = std::function<at::Tensor(const at::Tensor& real)>;

// Turns the fake, which user code still holds, into the real tensor: the fake takes over the memory, the version
// counter and the place in autograd's graph. If `real` is a view, the fake becomes a view of the tensor that
// `handle_of` returns for the base. If `real` is a leaf, the fake also takes over its gradient accumulator, so
// gradients of existing graphs reach the fake. Afterwards only autograd's own references may use `real`.
void become_real(const at::Tensor& fake, const at::Tensor& real, const HandleOf& handle_of);

// Returns a second object of a real view whose base user code holds as another tensor: a view of that tensor. Returns
// every other tensor itself.
at::Tensor view_of_handles(const at::Tensor& view, const HandleOf& handle_of);

// Like become_real(), but other code keeps using `real`. Both tensors share memory and versions. If `real` is a leaf
// that requires grad, they also share the gradient, and the fake requires grad whenever `real` does. If `real` is no
// such leaf, requires_grad_() on one tensor does not affect the other. set_data() on one tensor never affects the
// other.
void share_real(const at::Tensor& fake, const at::Tensor& real);

// From now on, the fake has the history of `real`: autograd edges to the fake lead to the autograd node of `real`. The
// caller must keep the returned node, which may be null, for as long as it uses the fake.
libtorch::NodePtr lend_history(const at::Tensor& fake, const at::Tensor& real);
// From now on the fake does not require grad.
void take_history(const at::Tensor& fake);

}  // namespace rehearse::capture
