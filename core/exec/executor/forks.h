// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pthread.h>
#include <unistd.h>

namespace rehearse::exec {

// From the first world on, a process that a rank forks ends at its first switch, because it has a copy of all ranks and
// would run the world a second time. In a process with an interpreter, the forked process leaves the world instead:
// from then on, its one thread is the rank's.
void note_forks();

// The id of the thread that goes on after a rank's fork: that of the rank's fiber. `id`: of the thread in any other
// process.
pthread_t id_of_forked(pthread_t id) noexcept;

// Ends the calling process if it is not `process`, which started the run.
void leave_if_forked(pid_t process) noexcept;

}  // namespace rehearse::exec
