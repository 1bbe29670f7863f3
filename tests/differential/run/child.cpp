// SPDX-License-Identifier: BSD-3-Clause
#include "differential/run/child.h"

#include <array>
#include <csignal>
#include <cstdio>

#include <c10/util/Exception.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rehearse_test::differential {
namespace {

std::string read_to_end(int file) {
  std::string text;
  std::array<char, 4096> block;
  for (ssize_t count; (count = ::read(file, block.data(), block.size())) > 0;) {
    text.append(block.data(), static_cast<std::size_t>(count));
  }
  return text;
}

void write_all(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count <= 0) return;
    done += static_cast<std::size_t>(count);
  }
}

// A sanitizer's handlers would turn a crash into an exit code.
void let_signals_end_it() {
  for (const int signal : {SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGABRT}) std::signal(signal, SIG_DFL);
}

}  // namespace

ChildAnswer ask_child(const std::function<std::string()>& ask, int seconds_max) {
  int ends[2];
  TORCH_CHECK(::pipe(ends) == 0, "no pipe");
  std::fflush(stdout);
  const pid_t child = ::fork();
  TORCH_CHECK(child >= 0, "no process");
  if (child == 0) {
    ::close(ends[0]);
    let_signals_end_it();
    ::alarm(static_cast<unsigned>(seconds_max));
    write_all(ends[1], ask());
    ::_exit(0);
  }
  ::close(ends[1]);
  ChildAnswer answer;
  answer.text = read_to_end(ends[0]);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) answer.signal = WTERMSIG(status);
  return answer;
}

}  // namespace rehearse_test::differential
