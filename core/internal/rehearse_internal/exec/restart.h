// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <rehearse/exec/time.h>

namespace rehearse::exec {

class RankExecutor;

// Begins `rank` again, `after` from now, as a process that is started once more: its body runs from the beginning, in
// new fibers, with a new image of library state (RankState::create_image()) and of what libc keeps for a process.
// Nothing of its former life reaches it; what that owned stays as it is. To the outcome the rank ends when its last
// life does. The world does not end before by itself, only early.
//
// `before` is called first, on the scheduler's own context, as a timer is. A rank that runs at that time goes on:
// `before` is not called, and nothing happens. Anywhere on the executor's thread, also before run(). What cannot be
// created ends the world, and run() throws it. A time behind the end of virtual time is that end.
void restart_rank(RankExecutor& executor, int rank, VirtualDuration after, std::function<void()> before = {});

// Has the rank a restart_rank() whose time has not come?
bool is_to_begin_again(RankExecutor& executor, int rank) noexcept;

// While there is one, the world does not end by itself though all ranks have ended: what is to come may yet begin one
// again. Whoever holds the world has a timer armed, or nobody is left to let it go. Not thread-safe; the executor
// outlives it.
class WorldHold {
 public:
  explicit WorldHold(RankExecutor& executor) noexcept;
  WorldHold(const WorldHold&) = delete;
  WorldHold& operator=(const WorldHold&) = delete;
  ~WorldHold();

 private:
  RankExecutor& executor_;
};

// How often the rank has begun again; 0: in its first life.
int incarnation(RankExecutor& executor, int rank) noexcept;

}  // namespace rehearse::exec
