// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

namespace rehearse {

// What REHEARSE_* variables ask of a check; the table is in rehearse.h.
struct Environment {
  std::optional<std::uint64_t> seed;
  std::uint64_t runs = 1;
  std::string replay;  // empty: not asked
  std::optional<bool> preempt;
  bool check_determinism = false;
  std::string trace_directory;                     // empty: not asked
  std::optional<std::chrono::seconds> time_limit;  // of each run, real time
};

// A variable has a value that makes no sense; the text names it, the value, and what would be right.
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// `get` is std::getenv or stands for it. Throws EnvironmentError. An empty value counts as unset.
Environment read_environment(const std::function<const char*(const char* name)>& get);

}  // namespace rehearse
