// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include <rehearse/exec/call_site.h>

namespace rehearse::capture {

// The innermost frames of the caller, enough to find the user's line: some microseconds.
exec::CallSite call_stack();

// Whether a function whose name has `name` in it is among the frames. Slow: looks names up.
bool is_called_by(const exec::CallSite& site, std::string_view name);

// Whether a function that LibTorch exports is among the caller's frames: `prefix` begins its mangled name. A
// microsecond a frame, without line tables.
bool is_called_by_exported(std::string_view prefix);

}  // namespace rehearse::capture
