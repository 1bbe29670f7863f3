// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/call_site.h>

// A user's code that is compiled without debug information.
namespace without_lines {

rehearse::exec::CallSite in_a_function();  // std::function's, of a lambda
rehearse::exec::CallSite in_a_named_function();

}  // namespace without_lines
