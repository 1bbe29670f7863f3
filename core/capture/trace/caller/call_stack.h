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

// True if the caller's frames up to `outer` include a function that LibTorch exports and whose mangled name starts with
// one of the prefixes. A function of any other library does not count, whatever its name is.
bool is_called_by_libtorch(const void* outer, std::initializer_list<std::string_view> prefixes);

}  // namespace rehearse::capture
