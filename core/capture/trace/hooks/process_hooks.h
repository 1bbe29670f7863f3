// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the first capture installs for the life of the process. Later calls do nothing.
namespace rehearse::capture {

// Routes operators with the key DeferredInit to Tracer::current(), and aten::matmul on fakes to matmul_of_fakes(). The
// tracer gets aten::max_pool1d as aten::max_pool1d_with_indices. The first call registers the kernels for the life of
// the process; later calls do nothing.
void register_trace_kernels();

// Puts hooks between tensors and autograd, once per process. They see what code does with a tensor without an operator
// (register_hook(), retain_grad(), backward()). In a capture, they record tensor hooks, and requires_grad_(true)
// on a tensor that the code has computed. If no graph can hold what the code does, they let the rest of the code run
// eagerly or, if that is not possible, throw NotCapturable with the user's line. For set_data(), they always throw.
// Everything else goes on to autograd.
void watch_variable_hooks();

// From now on, captures note each refusal (an error that says why code cannot be captured) when it is thrown, including
// LibTorch's own errors about fakes. The code may catch the error and then do something that it would not do without a
// capture. Lasts for the life of the process.
void watch_refusals();

// From now on, TorchScript code that captured code calls (a script module, its methods, a script function) runs as an
// eager region. The JIT reads the module's mode and attributes anew in each call, and changes its own plan in the first
// calls, so no graph could hold the operators of one run. The source file defines the functions of LibTorch through
// which all of these calls pass (docs/decisions/0028).
void watch_script_calls();

}  // namespace rehearse::capture
