// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>
#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::capture {

// The innermost frames of the caller, enough to find the user's line: some microseconds.
exec::CallSite call_stack();

// The return address of the caller's caller: where the stack of all that the caller calls goes on outside of it.
void* outer_address();

// The caller's return addresses, innermost first, up to but without `outer`.
std::vector<void*> addresses_within(const void* outer);

// Whether a function whose name has `name` in it is among the frames. Slow: looks names up.
bool is_called_by(const exec::CallSite& site, std::string_view name);

// Whether a function that LibTorch exports is among the caller's frames: `prefix` begins its mangled name.
bool is_called_by_exported(std::string_view prefix);

// Whether torch::autograd::grad() or backward() is among the callers.
bool is_called_by_gradients();

}  // namespace rehearse::capture
