// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "differential/run/settings.h"
#include "differential/run/shrink.h"

namespace rehearse_test::differential {

// The result of a test case: nothing, a difference, an error of the tester, or the death of the process that ran it.
struct Verdict {
  std::string kind;  // empty: the program does the same in eager mode and compiled
  std::string text;
  int call = -1;
};

Verdict verdict_of(const Case& tested, const Setting& setting);

// Tests the case in a process of its own, which may crash, or hang for up to `seconds_max`.
Verdict verdict_in_child(const Case& tested, const Setting& setting, int seconds_max = 20);

// A failing case, made as small as possible.
struct Finding {
  std::string text;       // the program, the setting and the difference, for readers
  std::string signature;  // equal for findings of what looks like one bug: the kind, and the remaining operations
};

// Makes the case smaller as long as its verdict keeps the same kind.
Finding shrunk(const Case& failing, const Setting& setting, const Verdict& verdict);

// Drops LibTorch's warnings, which would bury the report.
void silence_warnings();

}  // namespace rehearse_test::differential
