// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::operators {

// Gives the operators of _c10d_functional_autograd the gradients that LibTorch's C++ libraries have until 2.12. Since
// 2.13, only PyTorch's Python code has them, and without it the operators silently cut off the gradient. Does nothing
// for an operator that has a gradient. Calls after the first one do nothing.
void register_collective_gradients();

}  // namespace rehearse::operators
