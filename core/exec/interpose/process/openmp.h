// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {
class Fiber;
}

namespace rehearse::exec::interpose {

// The OpenMP run-time library that contains this function, "libomp"; null if none does.
const char* openmp_library_of(const void* function) noexcept;

// Throws. The library cannot serve ranks, because its threads find each other by data that it keeps per system thread,
// and wait in the kernel.
[[noreturn]] void refuse_openmp(const Fiber& fiber, const char* library);

}  // namespace rehearse::exec::interpose
