// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {
class Fiber;
}

namespace rehearse::exec::interpose {

// The OpenMP run-time library that this function belongs to, "libomp"; null when it belongs to none.
const char* openmp_library_of(const void* function) noexcept;

// Throws. Its threads find each other by what the library keeps for the system's threads, and wait in the kernel.
[[noreturn]] void refuse_openmp(const Fiber& fiber, const char* library);

}  // namespace rehearse::exec::interpose
