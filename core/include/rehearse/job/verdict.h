// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace rehearse {

// How a run ended: the first words of every report, and the exit code of the command.
enum class Verdict {
  ok,               // nothing was found, and every rank's body returned, unless a planned fault crashed it
  rank_failed,      // an exception left a rank's body, or the body called exit() or the like
  mismatch,         // ranks made different calls at the same position in a group's order, or left out a call unnoticed
  deadlock,         // no rank could go on, whether or not timeouts would have ended the wait
  nondeterminism,   // two runs of the same seed, or a run and its replay, took different paths
  livelock,         // ranks only polled things that could no longer change, or only repeated calls that failed
  step_budget,      // more switches than allowed
  check_failed,     // a check of the program or of the simulation failed
  timeout,          // an operation or a wait exceeded its timeout although a missing rank could still go on
  interrupted,      // stopped from outside: Ctrl-C, SIGTERM, a sweep's --time-limit
  crashed,          // a process died during the run (another process reports it), or faults crashed all ranks
  fault_not_fired,  // everything else was right, but a planned fault did not fire on all ranks that it names
  out_of_memory,    // a rank's tensors exceeded its memory, and the rank did not recover
};

// "DEADLOCK", "OK", "RANK FAILED", ...
std::string_view to_string(Verdict verdict) noexcept;

// True if ranks waited in vain: a deadlock, a livelock, a timeout.
bool is_of_waits(Verdict verdict) noexcept;

// Every verdict once, in the order above.
std::vector<Verdict> all_verdicts();

// The inverse of to_string(), for logs and JSON; nullopt if no verdict has that name.
std::optional<Verdict> verdict_from_string(std::string_view name) noexcept;

// 0 ok, 1 rank failed, 2 mismatch, 3 deadlock, 4 nondeterminism, 5 livelock or step budget, 6 check failed,
// 7 fault not fired, 8 timeout, 9 crashed, 10 out of memory, 130 interrupted. The command adds 64 (usage), 69 (this
// machine lacks what the run needs), 70 (internal error), 71 (out of memory or another resource) and 74 (output
// could not be written).
int exit_code(Verdict verdict) noexcept;

}  // namespace rehearse
