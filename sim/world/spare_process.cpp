// SPDX-License-Identifier: BSD-3-Clause
#include "world/spare_process.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rehearse_internal/exec/signal_io.h>

namespace rehearse::sim {
namespace {

std::string read_to_the_end(int pipe) {
  std::string text;
  char part[4096];
  for (;;) {
    const auto got = exec::read_at_once(pipe, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part, static_cast<std::size_t>(got));
  }
}

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

[[noreturn]] void end_as(int status) {
  if (WIFSIGNALED(status)) {
    std::signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  _exit(WEXITSTATUS(status));
}

}  // namespace

SpareProcess::SpareProcess() {
  int ends[2];
  if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "a pipe to a copy of the process");
  std::fflush(nullptr);  // otherwise both processes would print the buffered text
  copy_ = fork();
  if (copy_ < 0) throw std::system_error(errno, std::generic_category(), "a copy of the process");
  if (copy_ > 0) {
    close(ends[0]);
    pipe_ = ends[1];
    return;
  }
  close(ends[1]);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  word_ = read_to_the_end(ends[0]);
  close(ends[0]);
  if (word_->empty()) _exit(0);
}

SpareProcess::~SpareProcess() {
  if (copy_ <= 0) return;
  close(pipe_);
  wait_for(copy_);
}

void SpareProcess::go_on_with(const std::string& word) {
  std::fflush(nullptr);
  for (std::size_t done = 0; done < word.size();) {
    const auto written = exec::write_at_once(pipe_, word.data() + done, word.size() - done);
    if (written < 0 && errno != EINTR) break;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  close(pipe_);
  end_as(wait_for(copy_));
}

}  // namespace rehearse::sim
