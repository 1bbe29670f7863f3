// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse_internal/exec/executor.h>

namespace rehearse::sim {

// How checkers end a world: as CHECK FAILED, with what the first of them has found.
class Finding {
 public:
  explicit Finding(exec::RankExecutor& executor) : executor_(executor) {}  // outlives it

  // Nothing is looked for any more.
  bool is_over() const noexcept { return executor_.ending(); }

  // Anywhere on the executor's thread. Returns.
  void tell(std::string what) { executor_.stop(std::move(what)); }

  // In the fiber of the rank that was about to do it: does not return.
  [[noreturn]] void stop_here(std::string what);

 private:
  exec::RankExecutor& executor_;
};

}  // namespace rehearse::sim
