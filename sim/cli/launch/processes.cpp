// SPDX-License-Identifier: BSD-3-Clause
#include "cli/launch/processes.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/death/signals.h"
#include "cli/terminal/progress.h"
#include "record/output_file.h"

extern char** environ;

namespace rehearse::cli {
namespace {

// A process that has ended may have started another process, which keeps the output open. Read that output for at most
// this long.
constexpr std::chrono::seconds kForTheRest{5};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string_view name_of_variable(std::string_view variable) { return variable.substr(0, variable.find('=')); }

// This process's environment, in which `added` replaces variables of the same names.
std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** each = environ; *each != nullptr; ++each) {
    const auto is_same = [&](const auto& other) { return name_of_variable(other) == name_of_variable(*each); };
    if (std::ranges::none_of(added, is_same)) all.emplace_back(*each);
  }
  return all;
}

// The path of this executable under its own name, which `ps` and `top` show. If another file has taken that path,
// returns the link to the running executable.
std::string this_executable() {
  const std::filesystem::path running = "/proc/self/exe";
  std::error_code error;
  const auto named = std::filesystem::read_symlink(running, error);
  return !error && std::filesystem::equivalent(named, running, error) ? named.string() : running.string();
}

// Prepared before fork(), because between fork() and exec() the new process may only make system calls.
struct Execution {
  std::string executable;
  char* const* words;
  char* const* environment;
  int output;
  int failures;  // a pipe to which become() writes errno if it fails
  pid_t parent;
};

void handle_by_default(int signal) {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
}

// Runs in the new process. If the parent died before the prctl() call, this process has another parent and ends.
[[noreturn]] void become(const Execution& what) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != what.parent) _exit(127);
  setpgid(0, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) handle_by_default(signal);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int input = open("/dev/null", O_RDONLY);
  if (input >= 0 && dup2(input, STDIN_FILENO) >= 0 && dup2(what.output, STDOUT_FILENO) >= 0 &&
      dup2(what.output, STDERR_FILENO) >= 0) {
    if (input > STDERR_FILENO) close(input);
    execve(what.executable.c_str(), what.words, what.environment);
  }
  const int error = errno;
  [[maybe_unused]] const auto written = write(what.failures, &error, sizeof error);
  _exit(127);
}

}  // namespace

Processes::~Processes() {
  signal_all(SIGKILL);
  for (auto& one : all_) {
    if (one.end.ended) continue;
    while (waitpid(one.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void Processes::start(const ProcessStart& start) {
  One one;
  one.printed_to = start.printed;
  one.printed.open(start.printed, std::ios::binary);
  if (!one.printed)
    throw sim::OutputError(fmt::format("{}: cannot be written: {}", start.printed.string(), std::strerror(errno)));
  auto pipe = make_pipe();
  auto failures = make_pipe();
  auto words = start.words;
  auto variables = environment_with(start.environment);
  const auto word_pointers = pointers_to(words);
  const auto variable_pointers = pointers_to(variables);
  const Execution execution{this_executable(),    word_pointers.data(),     variable_pointers.data(),
                            pipe.write_end.get(), failures.write_end.get(), getpid()};
  {
    const SignalsHeld held;
    one.pid = fork();
    if (one.pid == 0) become(execution);
  }
  if (one.pid < 0) throw std::system_error(errno, std::generic_category(), "a process for a rank");
  failures.write_end = Fd();
  int error = 0;
  if (read_whole(failures.read_end.get(), &error, sizeof error)) {
    while (waitpid(one.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    throw std::system_error(error, std::generic_category(), "a process for a rank");
  }
  one.output = std::move(pipe.read_end);
  fcntl(one.output.get(), F_SETFL, O_NONBLOCK);
  all_.push_back(std::move(one));
}

void Processes::look(std::chrono::milliseconds most) {
  std::vector<pollfd> waited;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (!all_[i].printing) continue;
    waited.push_back({all_[i].output.get(), POLLIN, 0});
    numbers.push_back(i);
  }
  poll(waited.data(), waited.size(), static_cast<int>(most.count()));
  for (std::size_t i = 0; i < waited.size(); ++i) {
    if (waited[i].revents != 0) read_from(numbers[i]);
  }
  for (std::size_t i = 0; i < all_.size(); ++i) {
    auto& one = all_[i];
    reap(one);
    if (one.end.ended && one.printing && real_time() - one.ended_at > kForTheRest) one.printing = false;
    if (!one.printing) finish_line(i);
  }
}

void Processes::read_from(std::size_t number) {
  auto& one = all_[number];
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(one.output.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;  // nothing to read for now
    if (got == 0) {
      one.printing = false;
      return;
    }
    keep(one, number, {buffer, static_cast<std::size_t>(got)});
    one.line.append(buffer, static_cast<std::size_t>(got));
    for (auto end = one.line.find('\n'); end != std::string::npos; end = one.line.find('\n')) {
      show_(number, std::string_view(one.line).substr(0, end));
      one.line.erase(0, end + 1);
    }
  }
}

// If writing fails, reports that once.
void Processes::keep(One& one, std::size_t number, std::string_view text) {
  if (!one.printed) return;
  errno = 0;
  if (one.printed.write(text.data(), static_cast<std::streamsize>(text.size())).flush()) return;
  show_(number, fmt::format("{}: cannot be written: {}", one.printed_to.string(), std::strerror(errno)));
}

void Processes::finish_line(std::size_t number) {
  auto& one = all_[number];
  if (!one.line.empty()) show_(number, one.line);
  one.line.clear();
}

void Processes::reap(One& one) {
  int status = 0;
  auto& end = one.end;
  while (!end.ended && waitpid(one.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == one.pid) {
    if (WIFSTOPPED(status)) end.stopped_by = WSTOPSIG(status);
    if (WIFCONTINUED(status)) end.stopped_by = 0;
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    if (WIFEXITED(status)) end.code = WEXITSTATUS(status);
    end.ended = WIFSIGNALED(status) || WIFEXITED(status);
    if (end.ended) one.ended_at = real_time();
  }
}

bool Processes::any_runs() const noexcept {
  return std::ranges::any_of(all_, [](const One& one) { return !one.end.ended || one.printing; });
}

bool Processes::only_stopped_ones_run() const noexcept {
  const auto is_stopped = [](const One& one) { return !one.end.ended && one.end.stopped_by != 0; };
  return std::ranges::any_of(all_, is_stopped) &&
         std::ranges::all_of(all_, [&](const One& one) { return one.end.ended || is_stopped(one); });
}

void Processes::signal_all(int signal) const noexcept {
  for (const auto& one : all_) {
    if (!one.end.ended) kill(one.pid, signal);
  }
}

void Processes::kill_all() noexcept {
  for (auto& one : all_) {
    if (!one.end.ended) one.end.killed = true;
  }
  signal_all(SIGKILL);
}

std::vector<ProcessEnd> Processes::ends() const {
  std::vector<ProcessEnd> ends;
  for (const auto& one : all_) ends.push_back(one.end);
  return ends;
}

}  // namespace rehearse::cli
