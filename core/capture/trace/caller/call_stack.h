// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::capture {

// The caller's innermost frames, enough to find the user's line. Takes a few microseconds.
exec::CallSite call_stack();

// The caller's return address, which lies in the caller's caller. In the stack of anything that the caller calls, this
// address marks where the frames outside of the caller begin.
void* outer_address();

// The caller's return addresses, innermost first, up to but not including `outer`. At most as many as call_stack()
// returns.
std::vector<void*> addresses_within(const void* outer);

// The mangled name of the function of libtorch_cpu that contains the address. Empty if the address lies elsewhere or in
// a function that LibTorch does not export. The first lookup of an address is slow, because dladdr() searches half a
// million symbols; later ones take at most a microsecond. Any thread may call it.
std::string_view libtorch_function_at(const void* address);

// True if the caller's frames up to `outer` include a function that LibTorch exports and whose mangled name starts with
// one of the prefixes. A function of any other library does not count, whatever its name is.
bool is_called_by_libtorch(const void* outer, std::initializer_list<std::string_view> prefixes);

}  // namespace rehearse::capture
