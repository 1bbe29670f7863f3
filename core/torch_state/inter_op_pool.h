// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "torch_state/interposed.h"

namespace rehearse::torch_state {

// at::launch() and Engine::add_thread_pool_task(). LibTorch's threads for such tasks live as long as the process, but a
// rank's threads live only as long as the rank's world. Therefore a rank runs tasks of at::launch() in threads of its
// own. If backwards are nested so deeply that LibTorch would continue in another thread, add_thread_pool_task() throws.
std::vector<Interposed> interposed_pools();

}  // namespace rehearse::torch_state
