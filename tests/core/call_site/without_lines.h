// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/call_site.h>

// A user's code, compiled without debug information.
namespace without_lines {

rehearse::exec::CallSite in_a_function();  // captures the call site in a lambda that std::function calls
rehearse::exec::CallSite in_a_named_function();

}  // namespace without_lines
