// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/job/verdict.h>

namespace rehearse {

// The end of a process whose rank does not come back from its body although the job is over.
struct EarlyEnd {
  Verdict verdict = Verdict::crashed;  // of the job
  std::string headline;
  int rank = -1;      // this process's,
  std::string doing;  // and what it does: "did not come back from its body"
};

// Writes the report; may end the process. null: nobody does. Whoever sets it takes it away again. Thread safe.
using TellEarlyEnd = void (*)(const EarlyEnd& end);
void tell_early_end(TellEarlyEnd tell) noexcept;

// On another thread than the rank's: has it told, else says it on stderr, and ends the process with the verdict's exit
// code.
[[noreturn]] void end_early(const EarlyEnd& end);

}  // namespace rehearse
