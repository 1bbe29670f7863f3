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

// A process to start. It runs the same executable as this process.
struct ProcessStart {
  std::vector<std::string> words;        // its command line, beginning with the command's name
  std::vector<std::string> environment;  // "NAME=value", in addition to this process's environment
  std::filesystem::path printed;         // a file for everything that it prints
};

struct ProcessEnd {
  bool ended = false;
  int code = 0;
  int signal = 0;       // the signal that ended it; 0: none
  int stopped_by = 0;   // the signal that stopped it, if it has not continued since; 0: none
  bool killed = false;  // by kill_all()

  bool went_wrong() const noexcept { return ended && (code != 0 || signal != 0); }
};

// Processes that this process started. Each has its own process group, so that a terminal's Ctrl-C reaches only this
// process. Use it on one thread. The destructor kills processes that still run.
class Processes {
 public:
  // `show` receives each line that a process prints, without the line end.
  explicit Processes(std::function<void(std::size_t process, std::string_view line)> show) : show_(std::move(show)) {}
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes();

  // The system kills the new process when the thread that called start() ends. Throws std::system_error, and
  // OutputError if `start.printed` cannot be written.
  void start(const ProcessStart& start);

  // Blocks until a process prints something or `most` has passed. Then records what was printed, and which processes
  // have ended.
  void look(std::chrono::milliseconds most);

  bool any_runs() const noexcept;
  bool only_stopped_ones_run() const noexcept;  // at least one process runs, and all that run are stopped
  // Signals all processes that still run.
  void signal_all(int signal) const noexcept;
  void kill_all() noexcept;

  std::vector<ProcessEnd> ends() const;

 private:
  struct One {
    pid_t pid = -1;
    Fd output;
    bool printing = true;  // this process still reads `output`
    std::string line;      // an unfinished line
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
