// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>
#include <string_view>

#include <rehearse/job/report.h>

#include "record/output_file.h"

namespace rehearse::cli {

// The command exits with kExitOutput where the verdict was OK.
using sim::OutputError;

// The command's two streams. Results go to stdout; what only people want (the banner, progress) goes there
// too, or to stderr when stdout is for a machine. Then the process's own stdout is stderr as well from here
// on: what a program prints must not come between the JSON.
class Console {
 public:
  struct Options {
    bool color = true;  // only ever used on a terminal, and not with NO_COLOR or TERM=dumb in the environment
    bool quiet = false;
    bool machine = false;  // stdout holds JSON and nothing else
  };

  explicit Console(Options options);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console();

  // As they are; the caller writes the line ends. Results that cannot be written throw OutputError, unless
  // their reader has gone away (`| head`): that is the reader's choice.
  void result(std::string_view text);
  void note(std::string_view text);
  static void error(std::string_view text);
  // Leaves the line that was being redrawn by a process that is no more.
  void end_progress();

  // A result that comes last; returns what the process exits with: `exit_code`, or kExitOutput where that is
  // 0 and the result cannot be written (which is said on stderr).
  int conclude(std::string_view text, int exit_code);
  // The report, for people or as JSON.
  int conclude(const Report& report, int exit_code);
  // The same, with the exit code of its verdict.
  int conclude(const Report& report);

  // May results be colored?
  bool color() const noexcept { return color_; }
  // Does note() write to a terminal where lines can be redrawn?
  bool notes_on_terminal() const noexcept { return notes_on_terminal_; }

 private:
  Options options_;
  std::FILE* results_ = stdout;
  bool notes_on_terminal_ = false;
  bool color_ = false;
};

}  // namespace rehearse::cli
