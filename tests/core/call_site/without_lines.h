// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/call_site.h>

// A user's code, compiled without debug information.
namespace without_lines {

rehearse::exec::CallSite in_a_function();  // captures in a lambda that std::function calls
rehearse::exec::CallSite in_a_named_function();

}  // namespace without_lines
