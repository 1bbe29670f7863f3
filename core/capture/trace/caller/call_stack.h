// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

// True if the name of a function among the frames contains `name`. Slow, because it looks up names.
bool is_called_by(const exec::CallSite& site, std::string_view name);

// True if the caller's frames include a function that LibTorch exports and whose mangled name starts with `prefix`.
bool is_called_by_exported(std::string_view prefix);

// True if torch::autograd::grad() or backward() is among the callers.
bool is_called_by_gradients();

}  // namespace rehearse::capture
