// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/exec/executor.h>

namespace rehearse::comm {

// Collects the mismatches of a world. The first one ends the world.
class Mismatches {
 public:
  Mismatches(exec::RankExecutor& executor, CheckerSink& sink) : executor_(executor), sink_(sink) {}

  // False if another mismatch is already pending; a second one has nothing to add.
  bool begin_mismatch() noexcept { return !std::exchange(in_dispute_, true); }

  void report(const Mismatch& mismatch) { sink_.on_mismatch(mismatch); }

  // Reports the mismatch, stops the world and throws MismatchError.
  [[noreturn]] void fail(const Mismatch& mismatch);

 private:
  exec::RankExecutor& executor_;
  CheckerSink& sink_;
  bool in_dispute_ = false;
};

}  // namespace rehearse::comm
