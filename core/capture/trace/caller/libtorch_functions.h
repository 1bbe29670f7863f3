// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace rehearse::capture {

// The mangled name of the function of libtorch_cpu that the address lies in; empty: it lies elsewhere, or in a function
// that LibTorch does not export. A microsecond at most, but for the first time an address is asked for: dladdr() looks
// at half a million symbols. Any thread may call it.
std::string_view libtorch_function_at(const void* address);

}  // namespace rehearse::capture
