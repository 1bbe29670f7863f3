// SPDX-License-Identifier: BSD-3-Clause
// The installed `rehearse`: asks the loader whether it can load the command, and becomes the command. Without this, a
// LibTorch that has gone would be an error of the loader, which says neither what to install nor how to name it.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "cli/terminal/exit_codes.h"

namespace {

// Returns what the loader does not find for the command: libraries, or functions, as in a LibTorch of another version.
std::string missing_for(const std::string& command) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  const pid_t loader = fork();
  if (loader == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    for (const int end : ends) close(end);  // otherwise it would wait for itself to read what it says
    for (const auto* name : {"LD_TRACE_LOADED_OBJECTS", "LD_WARN", "LD_BIND_NOW"}) setenv(name, "1", 1);
    execl(command.c_str(), command.c_str(), nullptr);
    std::perror(("not found: " + command).c_str());
    _exit(1);
  }
  close(ends[1]);
  std::FILE* const output = fdopen(ends[0], "r");
  std::string missing;
  char* line = nullptr;
  std::size_t size = 0;
  for (int lines = 0; lines < 5 && getline(&line, &size, output) >= 0;) {
    const bool is_symbol = std::strstr(line, "undefined symbol") != nullptr && std::strstr(line, command.c_str());
    if (std::strstr(line, "not found") == nullptr && !is_symbol) continue;
    // Without a library, all of its functions are missing, too.
    if (is_symbol && missing.find("not found") != std::string::npos) break;
    missing += "  " + std::string(line + std::strspn(line, " \t"));
    ++lines;
  }
  std::free(line);
  std::fclose(output);
  if (loader > 0) waitpid(loader, nullptr, 0);
  return missing;
}

void say(const std::string& missing, const std::string& folder) {
  std::fprintf(stderr,
               "rehearse: cannot start with the LibTorch in %s:\n%s"
               "It needs LibTorch " REHEARSE_LIBTORCH_MINOR
               ", with which it was built. Get it with\n"
               "  python3 -m venv .venv\n"
               "  .venv/bin/pip install --no-deps " REHEARSE_LIBTORCH_PACKAGES
               "\n"
               "and name its folder, or that of an existing one:\n"
               "  export REHEARSE_LIBTORCH_DIR=/path/to/site-packages/torch\n",
               folder.c_str(), missing.c_str());
}

}  // namespace

int main(int, char** argv) {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  const auto command = (self.parent_path() / REHEARSE_FROM_BIN).lexically_normal().string();
  std::string folder = REHEARSE_LIBTORCH;
  std::string missing;
  if (const char* const other = std::getenv("REHEARSE_LIBTORCH_DIR"); other != nullptr && *other != '\0') {
    folder = other;
    const auto libraries = folder + "/lib";
    // The loader would go on to the LibTorch with which the command was built.
    if (access((libraries + "/libtorch_cpu.so").c_str(), R_OK) != 0) missing = "  no lib/libtorch_cpu.so\n";
    const char* const path = std::getenv("LD_LIBRARY_PATH");
    setenv("LD_LIBRARY_PATH", path == nullptr ? libraries.c_str() : (libraries + ":" + path).c_str(), 1);
  }
  if (missing.empty()) missing = missing_for(command);
  if (missing.empty()) execv(command.c_str(), argv);
  say(missing.empty() ? "  " + command + ": " + std::strerror(errno) + "\n" : missing, folder);
  return rehearse::cli::kExitUnavailable;
}
