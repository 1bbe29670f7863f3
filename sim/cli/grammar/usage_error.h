// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "cli/grammar/grammar.h"

namespace rehearse::cli {

// The user asked for something that cannot be done as it stands: an option, a file, a path. The text says
// what and what would be right; the command exits with kExitUsage.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws the UsageError that `what` is wrong, with the usage of the command (or, null, of the whole) below
// it.
[[noreturn]] void refuse(const std::string& name, const CommandSpec* command, std::string_view what);

}  // namespace rehearse::cli
