// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse_internal/exec/executor.h>

namespace rehearse::sim {

// How checkers end a world: as CHECK FAILED, with the first finding.
class Finding {
 public:
  explicit Finding(exec::RankExecutor& executor) : executor_(executor) {}  // `executor` must outlive it

  // True if the world is ending; checkers stop looking then.
  bool is_over() const noexcept { return executor_.ending(); }

  // Ends the world from anywhere on the executor's thread. Returns.
  void tell(std::string what) { executor_.stop(std::move(what)); }

  // Ends the world in the fiber of the rank that was about to break a checker's rule. Does not return.
  [[noreturn]] void stop_here(std::string what);

 private:
  exec::RankExecutor& executor_;
};

}  // namespace rehearse::sim
