// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include <rehearse/exec/call_site.h>

namespace rehearse::capture {

// The innermost frames of the caller, enough to find the user's line: some microseconds.
exec::CallSite call_stack();

// Whether a function whose name has `name` in it is among the frames. Slow: looks names up.
bool is_called_by(const exec::CallSite& site, std::string_view name);

// Whether at::tensor({1, 2, 3}) is among the caller's frames, which writes into the memory of an empty tensor.
bool is_called_by_at_tensor();

}  // namespace rehearse::capture
