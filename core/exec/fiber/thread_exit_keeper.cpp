// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/thread_exit_keeper.h>

namespace rehearse::exec {

constinit ThreadExitKeeper thread_exit_keeper = nullptr;

}  // namespace rehearse::exec
