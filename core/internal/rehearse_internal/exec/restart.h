// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <rehearse/exec/time.h>

namespace rehearse::exec {

class RankExecutor;

// Restarts `rank` when the time `after` has passed, as if its process were started again. The rank's body runs from the
// beginning, in new fibers, with a new image of library state (RankState::create_image()) and of libc's process state.
// The restart destroys nothing that the previous incarnation owned. If a rank has several incarnations, the outcome
// shows how the last one ended. Unless the world ends early, the world waits for the restart.
//
// The restart first calls `before`, on the scheduler's own context, like a timer. If the rank is alive at that time,
// nothing happens, and `before` is not called. Call restart_rank() anywhere on the executor's thread, also before
// run(). If a new fiber cannot be created, the world ends and run() throws. A time beyond the end of virtual time
// counts as that end.
void restart_rank(RankExecutor& executor, int rank, VirtualDuration after, std::function<void()> before = {});

// Whether the rank has a pending restart_rank().
bool is_to_begin_again(RankExecutor& executor, int rank) noexcept;

// While one exists, the world does not end even if all ranks have ended, because a later event may restart a rank. The
// holder must have a timer armed; otherwise nothing would ever release the world. Not thread-safe; the executor must
// outlive it.
class WorldHold {
 public:
  explicit WorldHold(RankExecutor& executor) noexcept;
  WorldHold(const WorldHold&) = delete;
  WorldHold& operator=(const WorldHold&) = delete;
  ~WorldHold();

 private:
  RankExecutor& executor_;
};

// How many times the rank has been restarted; 0: the first incarnation.
int incarnation(RankExecutor& executor, int rank) noexcept;

}  // namespace rehearse::exec
