// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace rehearse::cli {

// The whole command. Returns the process's exit code; does not throw.
int command(int argc, const char* const* argv);

// In a handler: says on stderr what was caught; returns the exit code for it. `self` is argv[0].
int exit_code_of_exception(const std::string& self);

}  // namespace rehearse::cli
