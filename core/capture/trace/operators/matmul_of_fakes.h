// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace rehearse::capture {

// aten::matmul below autograd, as a boxed kernel, where a FakeMode is on. LibTorch's own is made of other operators and
// asks for sizes as numbers, which would turn symbols into numbers wherever a matmul or a linear layer of more than two
// dimensions stands. Its result is always contiguous, and its sizes follow from the arguments'. A listener of the fake
// mode wants the other operators: for it they are called.
void matmul_of_fakes(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace rehearse::capture
