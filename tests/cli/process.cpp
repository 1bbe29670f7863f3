// SPDX-License-Identifier: BSD-3-Clause
#include "process.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rehearse::test {
namespace {

// In the child, between fork and exec.
[[noreturn]] void become(const std::filesystem::path& program, std::vector<char*> argv,
                         const std::filesystem::path& folder, const std::vector<std::string>& environment) {
  for (const auto& variable : environment) putenv(const_cast<char*>(variable.c_str()));
  const int out = open((folder / "stdout").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  const int err = open((folder / "stderr").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  const bool ready =
      dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0 && chdir(folder.c_str()) == 0;
  if (ready) execv(program.c_str(), argv.data());
  _exit(127);
}

}  // namespace

Finished run_process(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                     const std::filesystem::path& folder, const std::vector<std::string>& environment) {
  std::vector<std::string> words = {"job"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) become(program, argv, folder, environment);
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_file(folder / "stdout"),
          read_file(folder / "stderr")};
}

std::filesystem::path fresh_folder() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const auto folder = std::filesystem::path(::testing::TempDir()) /
                      (std::string("rehearse_") + test->test_suite_name() + "_" + test->name());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_file(const std::filesystem::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
}

}  // namespace rehearse::test
