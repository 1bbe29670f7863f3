// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace rehearse::exec {

class RankExecutor;

// Acts as if the rank's process were killed: none of its fibers runs again, so no destructor or catch block of the
// program runs. Their stacks are gone when the executor is destroyed; what the stacks own stays allocated. The outcome
// shows that the rank ended at this time.
//
// Does nothing if the rank or the world has ended. Otherwise does not return if called in a fiber of that rank.
void crash_rank(RankExecutor& executor, int rank);

// Ends the calling rank as if it had called exit(status). `call`: the call for the failure's text, "exit(3) was called
// in ...". Call it in a fiber of the rank only.
[[noreturn]] void exit_rank(int status, const std::string& call);

// True if the rank's body has neither returned, nor failed, nor crashed.
bool is_alive(RankExecutor& executor, int rank);

}  // namespace rehearse::exec
