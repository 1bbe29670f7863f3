// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::capture {

// Puts hooks between tensors and autograd, once per process. They see what code does with a tensor without an operator
// (register_hook(), retain_grad(), backward()). In a capture, they record tensor hooks, and requires_grad_(true)
// on a tensor that the code has computed. If no graph can hold what the code does, they let the rest of the code run
// eagerly or, if that is not possible, throw NotCapturable with the user's line. For set_data(), they always throw.
// Everything else goes on to autograd.
void watch_variable_hooks();

}  // namespace rehearse::capture
