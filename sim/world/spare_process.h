// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

namespace rehearse::sim {

// A copy of the process as it is before a run. An interpreter keeps what a run has changed: modules that it imported,
// caches, counters. So whoever repeats a run does it in the copy, where nothing has happened yet.
class SpareProcess {
 public:
  // Forks, and returns in both processes; in the copy only once the other one has called go_on_with(). Throws
  // std::system_error.
  SpareProcess();
  SpareProcess(const SpareProcess&) = delete;
  SpareProcess& operator=(const SpareProcess&) = delete;
  // Ends the copy, if it waits.
  ~SpareProcess();

  // In the copy: what the other process has said. Nothing in the other process.
  const std::optional<std::string>& word() const noexcept { return word_; }

  // Leaves everything else to the copy: this process ends as the copy does.
  [[noreturn]] void go_on_with(const std::string& word);

 private:
  pid_t copy_ = 0;
  int pipe_ = -1;  // to the copy
  std::optional<std::string> word_;
};

}  // namespace rehearse::sim
