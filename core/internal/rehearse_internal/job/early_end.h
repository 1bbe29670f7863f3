// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/job/rank_outcome.h>
#include <rehearse/job/verdict.h>
#include <sys/types.h>

namespace rehearse {

// The end of a process in the middle of its rank's body: the rank does not come back from it although the job is over,
// or has ended the process.
struct EarlyEnd {
  Verdict verdict = Verdict::crashed;  // of the job
  std::string headline;
  int rank = -1;      // this process's,
  std::string doing;  // and what it does: "did not come back from its body"
  RankOutcome state = RankOutcome::stopped;
  pid_t thread = 0;  // where it does that; 0: on the process's first one
};

// Writes the report; may end the process. null: nobody does. Whoever sets it takes it away again. Thread safe.
using TellEarlyEnd = void (*)(const EarlyEnd& end);
void tell_early_end(TellEarlyEnd tell) noexcept;

// Has it told, else says it on stderr, and ends the process with the verdict's exit
// code.
[[noreturn]] void end_early(const EarlyEnd& end);

}  // namespace rehearse
