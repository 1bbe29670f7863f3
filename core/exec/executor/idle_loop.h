// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/exec/idle_policy.h>

#include "world_parts.h"

namespace rehearse::exec {

// Does what the idle policy says when no fiber can run: pollers look again, time passes, or the world ends. Call it
// while no fiber is current.
class IdleLoop {
 public:
  explicit IdleLoop(WorldParts& world) noexcept : world_(world) {}

  // One step, after which a fiber may be able to run.
  void step();

  // While fibers can run: wakes those for whom other threads have signalled, and lets the policy look.
  void look() noexcept;

 private:
  IdleFacts facts() const;
  void release_pollers();
  void let_time_pass(const IdleStep& step, bool any_polls);
  void hear_threads() noexcept;

  WorldParts& world_;
};

}  // namespace rehearse::exec
