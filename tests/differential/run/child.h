// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

namespace rehearse_test::differential {

struct ChildAnswer {
  std::string text;
  int signal = 0;  // that ended the process; 0: none
};

// What `ask` returns in a process of its own, which may crash; after `seconds_max` it ends by SIGALRM.
ChildAnswer ask_child(const std::function<std::string()>& ask, int seconds_max);

}  // namespace rehearse_test::differential
