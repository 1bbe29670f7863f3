// SPDX-License-Identifier: BSD-3-Clause
#include "console.h"

#include <cstdio>
#include <cstdlib>

#include <unistd.h>

namespace rehearse::cli {
namespace {

// Flushed at once, so that stdout and stderr into one file keep their order.
void write(std::FILE* file, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

}  // namespace

Console::Console(Options options) : options_(options) {
  notes_on_terminal_ = isatty(options_.machine ? STDERR_FILENO : STDOUT_FILENO) != 0;
  const char* no_color = std::getenv("NO_COLOR");
  color_ =
      options_.color && !options_.machine && notes_on_terminal_ && (no_color == nullptr || *no_color == '\0');
}

void Console::result(std::string_view text) {
  write(stdout, text);
}

void Console::note(std::string_view text) {
  if (!options_.quiet) write(options_.machine ? stderr : stdout, text);
}

void Console::error(std::string_view text) {
  write(stderr, text);
}

}  // namespace rehearse::cli
