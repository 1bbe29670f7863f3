// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse_internal/exec/executor.h>

namespace rehearse::sim {

// How checkers end a world: as CHECK FAILED, with the first finding.
class Finding {
 public:
  explicit Finding(exec::RankExecutor& executor) : executor_(executor) {}  // `executor` must outlive it

  // True if the world is ending; checkers stop looking then.
  bool is_over() const noexcept { return executor_.ending(); }

  // Ends the world from anywhere on the executor's thread. Returns. `what`: what the rank did, or what happened to it.
  void tell(int rank, const std::string& what);

  // Ends the world in the fiber of a rank that was about to break a checker's rule. Does not return.
  [[noreturn]] void stop_here(int rank, const std::string& what);
  // `ranks`: all ranks at fault, ascending. `what` names them.
  [[noreturn]] void stop_here(std::vector<int> ranks, std::string what);

  // The ranks at fault in the finding that ended the world; empty if another cause ended it.
  const std::vector<int>& blamed() const noexcept { return blamed_; }

 private:
  void end(std::vector<int> ranks, std::string what);

  exec::RankExecutor& executor_;
  std::vector<int> blamed_;
};

}  // namespace rehearse::sim
