// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unistd.h>

namespace rehearse::exec {

// From the first world on, a process that a rank forks ends at its first switch, because it has a copy of all ranks and
// would run the world a second time.
void note_forks();

// Ends the calling process if it is not `process`, which started the run.
void leave_if_forked(pid_t process) noexcept;

}  // namespace rehearse::exec
