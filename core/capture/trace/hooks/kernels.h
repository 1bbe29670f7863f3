// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::capture {

// Routes operators with the key DeferredInit to Tracer::current(), and aten::matmul on fakes to matmul_of_fakes(). The
// tracer gets aten::max_pool1d as aten::max_pool1d_with_indices. The first call registers the kernels for the life of
// the process; later calls do nothing.
void register_trace_kernels();

}  // namespace rehearse::capture
