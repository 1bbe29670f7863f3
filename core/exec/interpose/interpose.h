// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec::interpose {

// Checks that the process calls our blocking functions of libc (pthread_cond_wait and the like) instead of libc's own:
// otherwise a rank that blocks would block all of them. Throws std::runtime_error naming the first function that is
// not ours and how to link; the result is remembered, so later calls cost a load.
void require_installed();

}  // namespace rehearse::exec::interpose
