// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <set>

#include <sys/types.h>

namespace rehearse::exec::interpose {

// The child processes that the ranks of one world have made. A child runs in real time. So a rank of an interpreter
// waits for it in real time, too, and virtual time stands still: how long the child takes decides nothing. A process
// may wait 10 s in all, because the child may be one that lives longer than the world, or wait for another rank.
class Children {
 public:
  Children();

  // The result of `look` as soon as it is not 0. 0: no child lives, or no time is left.
  template <class Look>
  int wait_for(const Look& look) const {
    for (;;) {
      const bool may_change = any_alive();
      if (const int result = look(); result != 0 || !may_change || !pass_real_time()) return result;
    }
  }

 private:
  bool any_alive() const;
  static bool pass_real_time();  // false: no time is left

  std::set<pid_t> of_others_;  // those that lived before the world
};

}  // namespace rehearse::exec::interpose
