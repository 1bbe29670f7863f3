// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec::interpose {

// Checks that the process calls our versions of libc's blocking functions (pthread_cond_wait and the like), because
// otherwise a rank that blocks would block all ranks. Throws std::runtime_error, which names the first function that is
// not ours and says how to link. Remembers success, so that later calls cost one load.
void require_installed();

}  // namespace rehearse::exec::interpose
