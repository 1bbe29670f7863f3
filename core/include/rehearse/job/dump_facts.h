// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// The additional parts of a report that explains the flight recorder's dumps of a real job. Ranks are ranks of the
// world, ascending.
struct DumpFacts {
  // Ranks that made the same call from the same stack. Only one call of each rank counts: its call in the first
  // mismatch, else the call that it had not completed, else its last call. In a report with too many stacks, a Stack
  // may stand for several calls.
  struct Stack {
    std::vector<int> ranks;
    std::string call;                 // "allreduce #7 on group \"0:default_pg\""
    std::vector<std::string> frames;  // "step at /job/train.py:41", innermost first, Python's and C++'s
    std::vector<std::string> own;     // the frames outside of libraries
  };

  std::string format;             // the version of the recorder's format: "2.10"
  std::vector<int> ranks;         // ranks that left a dump
  std::vector<int> without_dump;  // ranks whose calls are unknown
  std::vector<int> culprits;      // the ranks at fault; empty: none, or unknown
  std::vector<Stack> stacks;      // stacks of culprits come first
};

}  // namespace rehearse
