// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {

class RankExecutor;

// As if the rank's process were killed: none of its fibers runs again, so that no destructor and no catch of the
// program does. Their stacks, and what they own, stay as they are. To the outcome the rank has ended, at this time.
//
// Called in a fiber of that rank it does not return; elsewhere (a timer, another rank) it does. A rank that has ended
// stays as it is.
void crash_rank(RankExecutor& executor, int rank);

// Has the rank's body neither returned, nor failed, nor crashed?
bool is_alive(RankExecutor& executor, int rank);

}  // namespace rehearse::exec
