// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// What a report says beside the rest when it explains the flight recorder's dumps of a real job: plain data, without
// ownership of anything else; nothing here blocks or throws. Ranks are ranks of the world, ascending.
struct DumpFacts {
  // Ranks that stood in the same call, or that made it last, at the same place.
  struct Stack {
    std::vector<int> ranks;
    std::string call;                 // "allreduce #7 on group \"0:default_pg\""
    std::vector<std::string> frames;  // "step at /job/train.py:41", innermost first, Python's and C++'s
    std::vector<std::string> own;     // of them those of no library
  };

  std::string format;             // the version of the recorder's format: "2.10"
  std::vector<int> ranks;         // that left a dump
  std::vector<int> without_dump;  // of whose calls nobody knows
  std::vector<int> culprits;      // empty: nobody's fault, or not known
  std::vector<Stack> stacks;      // those of culprits first
};

}  // namespace rehearse
