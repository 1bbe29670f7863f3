// SPDX-License-Identifier: BSD-3-Clause
#include "cli/terminal/console.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/exec/kept_files.h>
#include <unistd.h>

#include "cli/terminal/exit_codes.h"

namespace rehearse::cli {
namespace {

// Flushes at once, so that stdout and stderr in one file keep their order. Returns true if all was written.
bool write(std::FILE* file, std::string_view text) {
  const bool taken = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fflush(file) == 0 && taken;
}

int kept_copy(int file) {
  const int copy = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (copy >= 0) exec::keep_open(copy);
  return copy;
}

void put_back(int copy, int file) {
  if (copy < 0) return;
  exec::stop_keeping(copy);
  dup2(copy, file);
  close(copy);
}

}  // namespace

void Console::flush() {
  std::cout.flush();
  std::fflush(nullptr);
}

Console::Silence::Silence() : out_(kept_copy(STDOUT_FILENO)), error_(kept_copy(STDERR_FILENO)) {
  flush();
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  if (out_ >= 0) dup2(nowhere, STDOUT_FILENO);
  if (error_ >= 0) dup2(nowhere, STDERR_FILENO);
  close(nowhere);
}

Console::Silence::~Silence() {
  flush();
  put_back(out_, STDOUT_FILENO);
  put_back(error_, STDERR_FILENO);
}

Console::Console(Options options) : options_(options) {
  const char* term = std::getenv("TERM");
  const bool able = term == nullptr || std::string_view(term) != "dumb";
  notes_on_terminal_ = able && isatty(options_.machine ? STDERR_FILENO : STDOUT_FILENO) != 0;
  const char* no_color = std::getenv("NO_COLOR");
  color_ = options_.color && !options_.machine && notes_on_terminal_ && (no_color == nullptr || *no_color == '\0');
  if (!options_.machine) return;
  results_ = fdopen(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0), "w");
  if (results_ == nullptr) throw OutputError("stdout: cannot be written");
  exec::keep_open(fileno(results_));
  dup2(STDERR_FILENO, STDOUT_FILENO);
}

Console::~Console() {
  if (results_ == stdout) return;
  std::fflush(stdout);
  exec::stop_keeping(fileno(results_));
  dup2(fileno(results_), STDOUT_FILENO);
  std::fclose(results_);
}

void Console::result(std::string_view text) {
  if (write(results_, text) || errno == EPIPE) return;
  throw OutputError(fmt::format("stdout: cannot be written: {}", std::strerror(errno)));
}

int Console::conclude(std::string_view text, int exit_code) {
  return leave([&] { result(text); }) || exit_code != 0 ? exit_code : kExitOutput;
}

int Console::conclude(const Report& report, int exit_code) {
  return conclude(options_.machine ? sim::to_json(report) : sim::to_text(report, {.color = color_}), exit_code);
}

int Console::conclude(const Report& report) { return conclude(report, exit_code(report.verdict)); }

int Console::code_after(const std::string& problem, int code) {
  if (problem.empty()) return code;
  error(fmt::format("{}; the files of this run are missing or incomplete\n", problem));
  return code == 0 ? kExitOutput : code;
}

void Console::note(std::string_view text) {
  if (!options_.quiet) write(options_.machine ? stderr : stdout, text);
}

void Console::end_progress() {
  if (notes_on_terminal_) note("\n");
}

void Console::error(std::string_view text) { write(stderr, text); }

}  // namespace rehearse::cli
