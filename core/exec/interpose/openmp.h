// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec::interpose {

// The OpenMP run-time library that this function belongs to, "libomp"; null when it belongs to none.
const char* openmp_library_of(const void* function) noexcept;

}  // namespace rehearse::exec::interpose
