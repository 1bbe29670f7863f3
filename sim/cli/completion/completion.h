// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/grammar/grammar.h"

// Scripts that make a shell complete the commands, options, files and programs of an executable. The scripts contain
// these words, so that Tab does not start the executable.
namespace rehearse::cli {

struct Completed {
  std::string name;                   // the executable's name, as people type it
  std::vector<std::string> programs;  // those in the executable
};

// The shells for which there are scripts.
const std::vector<std::string>& shells();

std::string bash_completion(const Completed& completed);
std::string fish_completion(const Completed& completed);
std::string zsh_completion(const Completed& completed);

// The words that an operand or a value may be, if they are known. Empty: files, or anything.
std::vector<std::string> words_for(Takes takes, const Completed& completed);

// The endings of file names that fit. Empty: any file, or no file.
std::vector<std::string> suffixes_for(Takes takes);

std::string function_name(const std::string& executable);

// `text` in a form that may stand between single quotes.
std::string inside_quotes(std::string_view text);

}  // namespace rehearse::cli
