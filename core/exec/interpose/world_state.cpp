// SPDX-License-Identifier: BSD-3-Clause
// The end of a world's tables.
#include "world_state.h"

namespace rehearse::exec::interpose {

WorldState::~WorldState() {
  // Their fibers never come back. Left pending they would stop the next world that comes by.
  for (const auto& [guard, fiber] : guards.running()) give_up_guard(guard);
  for (const auto& [once, fiber] : onces.running()) give_up_once(once);
}

}  // namespace rehearse::exec::interpose
