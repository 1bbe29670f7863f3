// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace rehearse::capture {

// Calls the operator on fakes; its results are left in `stack`. Throws UnknownShape if a kernel looked at a fake itself
// (its memory, its device, the fields of its implementation) or gave a real tensor. Other errors pass.
void call_kernels(const c10::OperatorHandle& op, torch::jit::Stack& stack);

}  // namespace rehearse::capture
