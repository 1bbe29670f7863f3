// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

namespace rehearse_test::differential {

struct ChildAnswer {
  std::string text;
  int signal = 0;  // the signal that ended the process; 0: none
};

// Runs `ask` in a process of its own, which may crash, and returns its answer. SIGALRM ends the process after
// `seconds_max`.
ChildAnswer ask_child(const std::function<std::string()>& ask, int seconds_max);

}  // namespace rehearse_test::differential
