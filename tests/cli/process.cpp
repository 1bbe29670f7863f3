// SPDX-License-Identifier: BSD-3-Clause
#include "process.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rehearse::test {
namespace {

// The words of a command line in the form that execv() takes.
class Argv {
 public:
  explicit Argv(const std::vector<std::string>& arguments) : words_{"job"} {
    words_.insert(words_.end(), arguments.begin(), arguments.end());
    for (auto& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
  }
  char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

// Runs in the child, between fork and exec.
[[noreturn]] void become(const std::filesystem::path& program, const Argv& argv, const std::filesystem::path& folder,
                         const std::vector<std::string>& environment) {
  for (const auto& variable : environment) putenv(const_cast<char*>(variable.c_str()));
  // A script's background processes ignore SIGINT, and the tests may be such a process.
  signal(SIGINT, SIG_DFL);
  if (chdir(folder.c_str()) == 0) execv(program.c_str(), argv.get());
  _exit(127);
}

void redirect(const std::filesystem::path& file, int to) {
  const int fd = open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (fd < 0 || dup2(fd, to) < 0) _exit(127);
}

int exit_code_of(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Reads until the other side is closed. A terminal reports that as an error.
std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = read(fd, buffer, sizeof buffer); got > 0; got = read(fd, buffer, sizeof buffer)) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

pid_t start_process(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                    const std::filesystem::path& folder, const std::vector<std::string>& environment) {
  const Argv argv(arguments);
  write_file(folder / "stdout", "");
  write_file(folder / "stderr", "");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child > 0) {
    setpgid(child, child);  // the child does the same, because either may run first
    return child;
  }
  setpgid(0, 0);
  redirect(folder / "stdout", STDOUT_FILENO);
  redirect(folder / "stderr", STDERR_FILENO);
  become(program, argv, folder, environment);
}

Finished finished(pid_t child, const std::filesystem::path& folder) {
  const int exit_code = exit_code_of(child);
  return {exit_code, read_file(folder / "stdout"), read_file(folder / "stderr")};
}

// Waits until `file` has the text, or the child has ended without writing it.
void wait_for_text(pid_t child, const std::filesystem::path& file, const std::string& text) {
  const auto has_ended = [child] {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
  };
  while (read_file(file).find(text) == std::string::npos && !has_ended()) usleep(10'000);
}

}  // namespace

Finished run_process(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                     const std::filesystem::path& folder, const std::vector<std::string>& environment) {
  return finished(start_process(program, arguments, folder, environment), folder);
}

Finished run_and_signal(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                        const std::filesystem::path& folder, const std::string& ready, int signal, int times) {
  const pid_t child = start_process(program, arguments, folder, {});
  wait_for_text(child, folder / "stdout", ready);
  kill(-child, signal);
  if (times > 1) {
    wait_for_text(child, folder / "stderr", "interrupted");
    kill(-child, signal);
  }
  return finished(child, folder);
}

Finished run_and_act(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                     const std::filesystem::path& folder, const std::string& ready,
                     const std::function<void(pid_t process)>& act, const std::vector<std::string>& environment) {
  const pid_t child = start_process(program, arguments, folder, environment);
  wait_for_text(child, folder / "stdout", ready);
  act(child);
  return finished(child, folder);
}

Finished run_on_terminal(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                         const std::filesystem::path& folder, const std::vector<std::string>& environment) {
  const Argv argv(arguments);
  winsize size{};
  size.ws_row = 24;
  size.ws_col = 80;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child < 0) throw std::runtime_error("forkpty failed");
  if (child == 0) become(program, argv, folder, environment);
  std::string text = read_all(terminal);
  close(terminal);
  return {exit_code_of(child), std::move(text), ""};
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
