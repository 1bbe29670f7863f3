// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_state/interposed.h"

namespace rehearse::torch_state {

// The constructor of c10d::TCPStore, which throws in a rank. LibTorch's server and clients wait in sockets, which would
// silently block all ranks.
Interposed interposed_store();

}  // namespace rehearse::torch_state
