// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include <rehearse/sim/schedule.h>

namespace rehearse {

// The settings of a check that come from REHEARSE_* variables; rehearse.h has the table.
struct Environment {
  std::optional<std::uint64_t> seed;
  std::optional<std::uint64_t> runs;
  std::string replay;  // empty: not set
  std::optional<sim::Strategy> schedule;
  std::optional<bool> preempt;
  bool check_determinism = false;
  std::string trace_directory;                     // empty: not set
  std::optional<std::chrono::seconds> time_limit;  // for each run, in real time
};

// A variable has a value that makes no sense, or names a folder in which a file cannot be written.
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// `get` is std::getenv or a replacement. An empty value counts as unset. Throws EnvironmentError.
Environment read_environment(const std::function<const char*(const char* name)>& get);

}  // namespace rehearse
