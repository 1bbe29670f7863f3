// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::capture {

// Puts itself between tensors and autograd, once a process: what a tensor is asked without an operator (hooks,
// retain_grad(), backward()) is refused in a capture, with the line, and goes on to autograd elsewhere.
void watch_variable_hooks();

}  // namespace rehearse::capture
