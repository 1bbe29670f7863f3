// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace rehearse::capture {

// The mangled name of the function of libtorch_cpu that contains the address. Empty if the address lies elsewhere or in
// a function that LibTorch does not export. The first lookup of an address is slow, because dladdr() searches half a
// million symbols; later ones take at most a microsecond. Any thread may call it.
std::string_view libtorch_function_at(const void* address);

}  // namespace rehearse::capture
