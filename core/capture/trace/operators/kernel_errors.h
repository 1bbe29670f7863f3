// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace rehearse::capture {

// Calls the operator on fakes and leaves the results in `stack`. Throws UnknownShape if a kernel accessed a fake's
// device or implementation fields or the memory of a Meta tensor that stood in for a fake, asked for the number behind
// an unknown size, or returned a real tensor. Other errors of the kernel reach the caller, also LibTorch's error about
// the memory of a fake (kDataAccessMessage).
void call_kernels(const c10::OperatorHandle& op, torch::jit::Stack& stack);

// True for LibTorch's errors about a fake: with the real tensor, the call may succeed.
bool is_about_a_fake(std::string_view message);

}  // namespace rehearse::capture
