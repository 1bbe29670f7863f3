// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include <rehearse/job/report.h>

#include "record/output_file.h"

namespace rehearse::cli {

// Thrown if the output cannot be written. The command then exits with kExitOutput, if its exit code would otherwise
// be 0.
using sim::OutputError;

// The command's two streams. Results go to stdout. Notes, which only people want (the banner, progress), also go to
// stdout, or to stderr if stdout is for a machine. In that case, the process's own stdout becomes stderr from here on,
// because the program's output must not mix with the JSON.
class Console {
 public:
  struct Options {
    bool color = true;  // only applies on a terminal, and not with NO_COLOR or TERM=dumb in the environment
    bool quiet = false;
    bool machine = false;  // stdout must contain only JSON
  };

  // While it lives, whatever the process prints to stdout and stderr is lost.
  class Silence {
   public:
    Silence();
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;
    ~Silence();

   private:
    int out_, error_;
  };

  explicit Console(Options options);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console();

  // Writes the text unchanged; the caller adds line ends. result() throws OutputError if it cannot write, unless the
  // reader has gone away (`| head`), which is the reader's choice.
  void result(std::string_view text);
  void note(std::string_view text);
  static void error(std::string_view text);
  // Writes out what the process has printed so far and still holds in buffers.
  static void flush();
  // Ends the line that a dead process was redrawing.
  void end_progress();

  // Writes the last result. Returns the process's exit code: `exit_code`, or kExitOutput if that is 0 and the result
  // cannot be written (then stderr says so).
  int conclude(std::string_view text, int exit_code);
  // Writes the report, for people or as JSON.
  int conclude(const Report& report, int exit_code);
  // The same, with the exit code of the report's verdict.
  int conclude(const Report& report);

  // Runs `write`, which writes a file. If it throws OutputError, tells so on stderr and returns false.
  template <class Write>
  static bool leave(const Write& write) {
    try {
      write();
      return true;
    } catch (const OutputError& failure) {
      error(std::string(failure.what()) + "\n");
      return false;
    }
  }
  // `problem`: why files of the run are missing; empty: none is. Tells so on stderr, and returns kExitOutput if `code`
  // is 0; otherwise returns `code`.
  static int code_after(const std::string& problem, int code);

  // True if results may have colors.
  bool color() const noexcept { return color_; }
  // True if note() writes to a terminal, on which lines can be redrawn.
  bool notes_on_terminal() const noexcept { return notes_on_terminal_; }

 private:
  Options options_;
  std::FILE* results_ = stdout;
  bool notes_on_terminal_ = false;
  bool color_ = false;
};

}  // namespace rehearse::cli
