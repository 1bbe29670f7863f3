// SPDX-License-Identifier: BSD-3-Clause
#include "world_state.h"

namespace rehearse::exec::interpose {

WorldState::~WorldState() {
  // The fibers that still run an initialisation never return. Their pending initialisations would block the next world
  // that reaches them.
  for (const auto& [guard, fiber] : guards.running()) give_up_guard(guard);
  for (const auto& [once, fiber] : onces.running()) give_up_once(once);
}

}  // namespace rehearse::exec::interpose
