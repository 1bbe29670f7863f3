// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {
class Fiber;
}

namespace rehearse::exec::interpose {

// The OpenMP run-time library that contains this function, for example "libomp"; null if none does.
const char* openmp_library_of(const void* function) noexcept;

// Throws an error that says why ranks cannot use the library: its threads wait in the kernel, and find each other by
// data that the library keeps per system thread.
[[noreturn]] void refuse_openmp(const Fiber& fiber, const char* library);

}  // namespace rehearse::exec::interpose
