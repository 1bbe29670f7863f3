// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "cli/grammar/grammar.h"

namespace rehearse::cli {

// The user asked for something impossible: a wrong option, file or path. The text says what is wrong and what would be
// right. The command exits with kExitUsage.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws a UsageError. Its text has the names of the program and the command, then `what`, and then the usage of the
// command (null: of the whole program).
[[noreturn]] void refuse(const std::string& name, const CommandSpec* command, std::string_view what);

}  // namespace rehearse::cli
