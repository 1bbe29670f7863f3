// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/exec/idle_policy.h>

#include "world_parts.h"

namespace rehearse::exec {

// Carries out the idle policy when no fiber can run: pollers look again, time passes, or the world ends. Call it while
// no fiber is current.
class IdleLoop {
 public:
  explicit IdleLoop(WorldParts& world) noexcept : world_(world) {}

  // Makes one step, after which a fiber may be able to run.
  void step();

  // Lets time pass to the next timer, although fibers may be able to run.
  void pass_time();

  // Call it while fibers can run: wakes fibers for which other threads have signalled, and calls the policy's poll().
  void poll() noexcept;

 private:
  IdleFacts facts() const;
  void release_pollers();
  void let_time_pass(const IdleStep& step, bool any_polls);
  void fire_due();
  void hear_threads() noexcept;

  WorldParts& world_;
};

}  // namespace rehearse::exec
