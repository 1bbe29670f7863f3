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
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/output_file.h"

extern char** environ;

namespace rehearse::cli {
namespace {

// A process that it started in its turn may keep its output open; nobody waits long for that.
constexpr int kLooksForTheRest = 100;

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string_view name_of_variable(std::string_view variable) { return variable.substr(0, variable.find('=')); }

// This process's, with `added` in the place of what has the same names.
std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** each = environ; *each != nullptr; ++each) {
    const auto is_same = [&](const auto& other) { return name_of_variable(other) == name_of_variable(*each); };
    if (std::none_of(added.begin(), added.end(), is_same)) all.emplace_back(*each);
  }
  return all;
}

// What posix_spawn is told besides; freed when it goes.
class SpawnOptions {
 public:
  explicit SpawnOptions(int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    posix_spawnattr_init(&attributes_);
    sigset_t handled;
    sigemptyset(&handled);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) sigaddset(&handled, signal);
    posix_spawnattr_setsigdefault(&attributes_, &handled);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnOptions(const SpawnOptions&) = delete;
  SpawnOptions& operator=(const SpawnOptions&) = delete;
  ~SpawnOptions() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

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
  one.printed.open(start.printed, std::ios::binary);
  if (!one.printed)
    throw sim::OutputError(fmt::format("{}: cannot be written: {}", start.printed.string(), std::strerror(errno)));
  auto pipe = make_pipe();
  const SpawnOptions options(pipe.write_end.get());
  auto words = start.words;
  auto variables = environment_with(start.environment);
  const int error = posix_spawn(&one.pid, "/proc/self/exe", options.actions(), options.attributes(),
                                pointers_to(words).data(), pointers_to(variables).data());
  if (error != 0) throw std::system_error(error, std::generic_category(), "a process for a rank");
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
    if (one.end.ended && one.printing && ++one.looks_since_end == kLooksForTheRest) one.printing = false;
    if (!one.printing) finish_line(i);
  }
}

void Processes::read_from(std::size_t number) {
  auto& one = all_[number];
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(one.output.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;  // no more for now
    if (got == 0) {
      one.printing = false;
      return;
    }
    one.printed.write(buffer, got).flush();
    one.line.append(buffer, static_cast<std::size_t>(got));
    for (auto end = one.line.find('\n'); end != std::string::npos; end = one.line.find('\n')) {
      show_(number, std::string_view(one.line).substr(0, end));
      one.line.erase(0, end + 1);
    }
  }
}

void Processes::finish_line(std::size_t number) {
  auto& one = all_[number];
  if (!one.line.empty()) show_(number, one.line);
  one.line.clear();
}

void Processes::reap(One& one) {
  int status = 0;
  if (one.end.ended || waitpid(one.pid, &status, WNOHANG) != one.pid) return;
  one.end.ended = true;
  if (WIFSIGNALED(status)) one.end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) one.end.code = WEXITSTATUS(status);
}

bool Processes::any_runs() const noexcept {
  return std::any_of(all_.begin(), all_.end(), [](const One& one) { return !one.end.ended || one.printing; });
}

void Processes::signal_all(int signal) const noexcept {
  for (const auto& one : all_) {
    if (!one.end.ended) kill(one.pid, signal);
  }
}

std::vector<ProcessEnd> Processes::ends() const {
  std::vector<ProcessEnd> ends;
  for (const auto& one : all_) ends.push_back(one.end);
  return ends;
}

}  // namespace rehearse::cli
