// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

namespace rehearse::capture {

// Which tensor user code has in the place of a real one that it was never given; the same one where there is none.
using HandleOf = std::function<at::Tensor(const at::Tensor& real)>;

// Makes the fake, which user code still holds, the real tensor that it stood for: its memory, its versions and its
// place in autograd's graph, as a view of the same base. `real` is to be used by nobody else afterwards but by
// autograd's own references. A leaf takes over the gradients of `real`: those of graphs that exist come to it.
void become_real(const at::Tensor& fake, const at::Tensor& real, const HandleOf& handle_of);

// The same where others do use `real`, as an argument of the call: the two share memory and versions, and those of a
// leaf its gradients. set_data() and requires_grad_() of one of them say nothing of the other.
void share_real(const at::Tensor& fake, const at::Tensor& real);

// Edges of autograd that code makes of the fake lead from now on to where those of `real` lead. What is returned is to
// be kept as long as the fake is used; it may be null.
std::shared_ptr<torch::autograd::Node> lend_history(const at::Tensor& fake, const at::Tensor& real);
// The fake requires no grad from now on.
void take_history(const at::Tensor& fake);

}  // namespace rehearse::capture
