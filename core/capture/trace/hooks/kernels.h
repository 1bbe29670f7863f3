// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::capture {

// Makes operators with the key DeferredInit come to Tracer::current(), and aten::matmul of fakes to a rule. The first
// call registers, for the life of the process; later ones do nothing.
void register_trace_kernels();

}  // namespace rehearse::capture
