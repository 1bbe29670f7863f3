// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/grammar/grammar.h"

// Scripts that make a shell complete the commands, options, files and programs of an executable. They know
// them when they are made, so that Tab starts no process.
namespace rehearse::cli {

struct Completed {
  std::string name;                   // of the executable, as it is typed
  std::vector<std::string> programs;  // that it holds
};

// The shells that there are scripts for.
const std::vector<std::string>& shells();

std::string bash_completion(const Completed& completed);
std::string fish_completion(const Completed& completed);
std::string zsh_completion(const Completed& completed);

// The words that an operand or a value may be, where they are known; empty: files, or anything.
std::vector<std::string> words_for(Takes takes, const Completed& completed);

// How the names of files end that fit; empty: any, or no files.
std::vector<std::string> suffixes_for(Takes takes);

// The name of a shell function for this executable.
std::string function_name(const std::string& executable);

// What stands between single quotes for `text`.
std::string inside_quotes(std::string_view text);

// A command's summary without what follows its first sentence, and without the full stop.
std::string_view headline(const CommandSpec& command);

}  // namespace rehearse::cli
