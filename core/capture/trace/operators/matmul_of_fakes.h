// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace rehearse::capture {

// A boxed kernel for aten::matmul below autograd, for when a FakeMode is on. LibTorch's own kernel decomposes matmul
// and asks for plain sizes, which would fix the symbols of every matmul, and of every linear layer whose input has more
// than two dimensions. This kernel computes the sizes of the result from the sizes of the arguments. If the fake mode
// has a listener, the kernel decomposes matmul instead, because the listener needs to see the operators.
void matmul_of_fakes(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace rehearse::capture
