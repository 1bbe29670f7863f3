// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options/world_rows.h"

namespace rehearse {

// The settings of a check that come from REHEARSE_* variables; rehearse.h has the table.
struct Environment {
  // The options of the world whose variables are set, with their texts.
  std::vector<std::pair<const sim::Option<WorldOptions>*, std::string>> given;
  std::optional<std::uint64_t> runs;
  std::string replay;  // empty: not set
  bool check_determinism = false;
  std::string trace_directory;                     // empty: not set
  std::optional<std::chrono::seconds> time_limit;  // for each run, in real time

  bool gives(std::string_view variable) const;
};

// A variable has a value that makes no sense, or names a folder in which a file cannot be written.
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// `get` is std::getenv or a replacement. An empty value counts as unset. Throws EnvironmentError.
Environment read_environment(const std::function<const char*(const char* name)>& get);

}  // namespace rehearse
