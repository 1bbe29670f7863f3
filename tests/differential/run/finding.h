// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "differential/run/settings.h"
#include "differential/run/shrink.h"

namespace rehearse_test::differential {

// What the test of a case has come to: nothing, a difference, or the death of the process that ran it.
struct Verdict {
  std::string kind;  // empty: the twins agree
  std::string text;
  int call = -1;
};

Verdict verdict_of(const Case& tested, const Setting& setting);

// The same in a process of its own, which may crash, or hang for `seconds_max`.
Verdict verdict_in_child(const Case& tested, const Setting& setting, int seconds_max = 20);

// A failing case as small as it gets.
struct Finding {
  std::string text;       // the program, the setting and the difference, for people
  std::string signature;  // equal for findings that look like one bug: the kind, and the operations that are left
};

// Makes the case smaller as long as it has the same kind of verdict.
Finding shrunk(const Case& failing, const Setting& setting, const Verdict& verdict);

// Warnings of the library are part of what it does, and would bury the report.
void silence_warnings();

}  // namespace rehearse_test::differential
