// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/grammar/arguments.h"

namespace rehearse::cli {

// The words of a command as typed.
struct Typed {
  std::string operand;  // the first operand
  std::vector<std::string> operands;
  std::map<std::string, std::string, std::less<>> values;              // by option; empty: not given
  std::map<std::string, std::vector<std::string>, std::less<>> lists;  // for options that may be repeated
  std::map<std::string, bool, std::less<>> flags;
};

// Converts the typed words into `arguments`. Throws UsageError for a wrong value.
void take_values(const std::string& name, const CommandSpec& command, const Typed& typed, Arguments& arguments);

}  // namespace rehearse::cli
