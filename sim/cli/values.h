// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"

namespace rehearse::cli {

// A command's words as they were typed.
struct Typed {
  std::string operand;
  std::map<std::string, std::string, std::less<>> values;  // by option; empty: not given
  std::map<std::string, bool, std::less<>> flags;
};

// Throws the UsageError that `what` is wrong, with the usage of the command (or, null, of the whole) below
// it.
[[noreturn]] void refuse(const std::string& name, const CommandSpec* command, std::string_view what);

// " (did you mean "--seed"?)", or nothing.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& among);

// Puts what was typed into `arguments`. Throws UsageError for a value that is wrong.
void take_values(const std::string& name, const CommandSpec& command, const Typed& typed, Arguments& arguments);

}  // namespace rehearse::cli
