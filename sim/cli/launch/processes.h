// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "cli/death/pipe.h"

namespace rehearse::cli {

// A process to start: this executable again.
struct ProcessStart {
  std::vector<std::string> words;        // its command line, the command's name first
  std::vector<std::string> environment;  // "NAME=value", beside this process's own
  std::filesystem::path printed;         // a file for all that it prints
};

// How a process ended.
struct ProcessEnd {
  bool ended = false;
  int code = 0;
  int signal = 0;       // that ended it; 0: none did
  int stopped_by = 0;   // the signal that has stopped it, and from which it has not gone on since; 0: none
  bool killed = false;  // by kill_all()

  bool went_wrong() const noexcept { return ended && (code != 0 || signal != 0); }
};

// Processes that this one started; each in a process group of its own, so that a terminal's Ctrl-C comes to this
// process alone. Used on one thread. Those that still run when this goes are killed.
class Processes {
 public:
  // `show` is given each line that one of them prints, without its end.
  explicit Processes(std::function<void(std::size_t process, std::string_view line)> show) : show_(std::move(show)) {}
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes();

  // The process does not outlive this one's thread that starts it. Throws std::system_error, and OutputError for the
  // file.
  void start(const ProcessStart& start);

  // Blocks until something is printed or `most` has passed; then notes what was printed, and who has ended.
  void look(std::chrono::milliseconds most);

  bool any_runs() const noexcept;
  bool only_stopped_ones_run() const noexcept;  // and at least one
  // Those that still run.
  void signal_all(int signal) const noexcept;
  void kill_all() noexcept;

  std::vector<ProcessEnd> ends() const;

 private:
  struct One {
    pid_t pid = -1;
    Fd output;
    bool printing = true;  // the other end of `output` is open
    std::string line;      // begun, without its end
    std::filesystem::path printed_to;
    std::ofstream printed;
    ProcessEnd end;
    std::chrono::nanoseconds ended_at{};
  };

  void read_from(std::size_t number);
  void keep(One& one, std::size_t number, std::string_view text);
  void reap(One& one);
  void finish_line(std::size_t number);

  std::function<void(std::size_t, std::string_view)> show_;
  std::vector<One> all_;
};

}  // namespace rehearse::cli
