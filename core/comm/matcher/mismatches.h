// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/exec/executor.h>

#include "comm/agree/vote.h"

namespace rehearse::comm {

// Collects the mismatches of a world. The first one ends the world.
class Mismatches {
 public:
  Mismatches(exec::RankExecutor& executor, CheckerSink& sink) : executor_(executor), sink_(sink) {}

  // False if another mismatch is already pending.
  bool begin_mismatch() noexcept { return first_.begin(); }

  void report(const Mismatch& mismatch) { sink_.on_mismatch(mismatch); }

  // Reports the mismatch, stops the world and throws MismatchError.
  [[noreturn]] void fail(const Mismatch& mismatch);

 private:
  exec::RankExecutor& executor_;
  CheckerSink& sink_;
  FirstMismatch first_;
};

}  // namespace rehearse::comm
