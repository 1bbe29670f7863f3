// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::torch_state {

// True if the process calls Rehearse's constructor of c10d::TCPStore, which throws in a rank. LibTorch's server and
// clients wait in sockets, which would silently block all ranks.
bool tcp_store_is_interposed() noexcept;

}  // namespace rehearse::torch_state
