// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::torch_state {

// Whether the process calls Rehearse's at::launch() and its Engine::add_thread_pool_task(). LibTorch's threads for such
// tasks live as long as the process, while a thread that a rank starts ends with its world. Therefore a rank runs tasks
// of at::launch() in threads of its own, and an engine that would start a thread for a backward in a backward throws.
bool thread_pools_are_interposed() noexcept;

}  // namespace rehearse::torch_state
