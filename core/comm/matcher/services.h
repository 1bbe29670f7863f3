// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/comm/fabric.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/exec/clock.h>
#include <rehearse_internal/exec/executor.h>

#include "comm/matcher/habits.h"
#include "comm/matcher/mismatches.h"
#include "comm/matcher/short_message_log.h"
#include "comm/record/call_recorder.h"

namespace rehearse::comm {

// Objects that the matchers of all groups of a world share. They must outlive the matchers.
struct Services {
  exec::RankExecutor& executor;
  exec::Clock& clock;
  Fabric& fabric;
  Mismatches& mismatches;
  ShortMessageLog& short_messages;
  Habits& habits;

  VirtualTime now() const noexcept { return clock.now(); }
  VirtualTime limit_now() const noexcept { return timers().limit_now(now()); }
  exec::TimerQueue& timers() const noexcept { return executor.timers(); }
};

// Objects that the matchers of one group share.
struct MatcherContext {
  const GroupIdentity& group;
  CallRecorder& recorder;
  Services& services;
};

}  // namespace rehearse::comm
