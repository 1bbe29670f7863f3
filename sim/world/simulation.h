// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/comm/communicators.h>
#include <rehearse/compile/journal.h>
#include <rehearse/exec/executor.h>
#include <rehearse/sim/world.h>

namespace rehearse::sim {

using ShowProgress = std::function<void(std::int64_t done, std::int64_t total, std::string_view text)>;

// All that one run of a world leaves behind; reports are made from it.
struct RunRecord {
  explicit RunRecord(comm::EventLogOptions events_kept) : events(events_kept) {}

  exec::RunOutcome outcome;
  DecisionLog decisions;
  comm::EventLog events;
  std::vector<comm::Mismatch> mismatches;
  std::vector<comm::PendingOperation> pending;  // calls that were not complete when the world ended
  std::vector<comm::PendingGroup> pending_groups;
  std::vector<comm::UnwaitedCalls> unwaited;
  compiler::Journal journal;
  std::map<std::string, std::uint64_t> checks;  // RankContext::expect(): how often each held
};

// Runs `body` once on every rank of a fresh world. Throws what the oracle throws.
std::unique_ptr<RunRecord> simulate(const WorldOptions& options, Oracle& oracle, const World::Body& body,
                                    const ShowProgress& show);

}  // namespace rehearse::sim
