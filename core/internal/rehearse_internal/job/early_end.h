// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/job/rank_outcome.h>
#include <rehearse/job/verdict.h>
#include <sys/types.h>

namespace rehearse {

// The end of a process in the middle of its rank's body. Either the rank does not return from its body although the job
// is over, or its program has ended the process.
struct EarlyEnd {
  Verdict verdict = Verdict::crashed;  // the job's verdict
  std::string headline;
  int rank = -1;      // this process's rank
  std::string doing;  // what that rank does: "did not return from its body after the job had ended"
  RankOutcome state = RankOutcome::stopped;
  pid_t thread = 0;  // the thread that runs the body; 0: the process's first one
};

// A function that writes the report of an early end, and may end the process. tell_early_end() sets it for this
// process; null: none. The code that sets it must reset it. Thread safe.
using TellEarlyEnd = void (*)(const EarlyEnd& end);
void tell_early_end(TellEarlyEnd tell) noexcept;

// Calls the function that tell_early_end() has set. If no function is set, or if the function returns, writes a line to
// stderr and ends the process with the verdict's exit code.
[[noreturn]] void end_early(const EarlyEnd& end);

}  // namespace rehearse
