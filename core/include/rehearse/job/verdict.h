// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace rehearse {

// What a run came to: the first words of every report, and the exit code of the command.
enum class Verdict {
  ok,               // every rank's body returned and nothing was found
  rank_failed,      // an exception left a rank's body
  mismatch,         // ranks called different things at the same place of a group's order
  deadlock,         // no rank could go on, with or without timeouts that would have ended the wait
  nondeterminism,   // two runs of the same seed, or a replay, took different ways
  livelock,         // ranks only looked at things that could no longer change
  step_budget,      // more switches than allowed
  check_failed,     // a check of the program's own, or a checker of the simulation
  timeout,          // an operation outlived its timeout although the missing rank was still on its way
  interrupted,      // from outside: Ctrl-C, SIGTERM, a sweep's --time-limit
  crashed,          // the process ended in the middle of the run (another one says so), or faults crashed all ranks
  fault_not_fired,  // all else was right, but a planned fault never took place
  out_of_memory,    // a rank's tensors took more than it has, and it did not live on without
};

// "DEADLOCK", "OK", "RANK FAILED", ...
std::string_view to_string(Verdict verdict) noexcept;

// Every verdict once, in the order above.
std::vector<Verdict> all_verdicts();

// The other way round, for logs and JSON; nothing when no verdict has that name.
std::optional<Verdict> verdict_from_string(std::string_view name) noexcept;

// 0 ok, 1 rank failed, 2 mismatch, 3 deadlock, 4 nondeterminism, 5 livelock or step budget, 6 check failed,
// 7 fault not fired, 8 timeout, 9 crashed, 10 out of memory, 130 interrupted. The command adds 64 (usage), 70 (internal
// error), 71 (out of memory or another resource) and 74 (output could not be written).
int exit_code(Verdict verdict) noexcept;

}  // namespace rehearse
