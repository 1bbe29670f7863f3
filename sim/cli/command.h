// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace rehearse::cli {

// argv[0] of a command that is a module of Python begins with it; options that only Python code reads may follow.
inline constexpr const char* kPythonCommand = "python -m rehearse";

// Runs the whole command. Returns the process's exit code; does not throw.
int command(int argc, const char* const* argv);

// Must be called in a catch block: prints the caught exception on stderr and returns its exit code. `self` is argv[0].
int exit_code_of_exception(const std::string& self);

}  // namespace rehearse::cli
