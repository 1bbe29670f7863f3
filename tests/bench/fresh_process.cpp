// SPDX-License-Identifier: BSD-3-Clause
#include "bench/fresh_process.h"

#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rehearse::bench {
namespace {

// Starts this program. Returns a stream with its output, and sets `child` to the process id.
std::FILE* start(const std::vector<std::string>& arguments, pid_t& child) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<char*> argv{const_cast<char*>("/proc/self/exe")};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int error = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    throw std::system_error(error, std::generic_category(), "posix_spawn");
  }
  return ::fdopen(ends[0], "r");
}

std::string read_all(std::FILE* stream) {
  std::string text;
  char block[256];
  while (const std::size_t size = std::fread(block, 1, sizeof block, stream)) text.append(block, size);
  std::fclose(stream);
  return text;
}

}  // namespace

std::vector<double> numbers_of_fresh_process(const std::vector<std::string>& arguments) {
  pid_t child = 0;
  const std::string text = read_all(start(arguments, child));
  int status = 0;
  ::waitpid(child, &status, 0);
  std::istringstream words(text);
  std::vector<double> numbers;
  for (double number; words >> number;) numbers.push_back(number);
  if (status != 0 || !words.eof()) {
    throw std::runtime_error("a measured process ended with status " + std::to_string(status) +
                             " and printed: " + text);
  }
  return numbers;
}

}  // namespace rehearse::bench
