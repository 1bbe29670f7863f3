// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/comm/event_log.h>
#include <rehearse/exec/decision_log.h>
#include <rehearse/job/fault_line.h>
#include <rehearse/job/rank_result.h>
#include <rehearse/job/state_finding.h>
#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/comm/pending.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/static_threads.h>
#include <rehearse_internal/job/checkpoint_journal.h>
#include <rehearse_internal/job/compile_journal.h>
#include <rehearse_internal/job/rank_memory.h>

namespace rehearse {

// Everything that one run of a job leaves behind, in any mode. Reports are made from it.
struct RunRecord {
  explicit RunRecord(comm::EventLogOptions events_kept) : events(events_kept) {}

  // Identifies a simulated run: a hash of its decisions, its calls and the effects of faults.
  std::uint64_t identity() const noexcept {
    return decisions.hash() ^ (events.hash() * 0x9E3779B97F4A7C15ull) ^ fired_hash;
  }

  exec::RunOutcome outcome;
  std::string transport;  // in a real run: what carried the tensors, as in Report; empty: a simulation
  DecisionLog decisions;
  comm::EventLog events;
  std::vector<comm::Mismatch> mismatches;
  std::vector<comm::PendingOperation> pending;  // calls that had not completed when the world ended
  std::vector<comm::PendingGroup> pending_groups;
  std::vector<comm::UnusedGroups> unused_groups;
  std::vector<comm::UnwaitedCalls> unwaited;
  std::vector<comm::ShortMessages> short_messages;
  compiler::Journal journal;
  elastic::CheckpointJournal checkpoints;
  // A run of the same seed without faults. Set only in a run that repeats another one to explain its failure, and only
  // if a check or a rank failed after ranks had resumed from a checkpoint.
  struct WithoutFaults {
    elastic::CheckpointJournal checkpoints;
    std::string failure;  // "CHECK FAILED: ..."; empty: it was OK
  };
  std::optional<WithoutFaults> without_faults;
  std::map<std::string, std::uint64_t> checks;  // RankContext::expect() and state checkers: how often each check held
  std::vector<RankResult> results;              // in the order in which ranks reported them
  // From state checkers: the finding that ended the world, or those made after all ranks had returned.
  std::vector<StateFinding> findings;
  std::vector<int> blamed;  // the ranks at fault, if a memory checker ended the world; ascending
  // Possible causes of a failure, as text, each with the ranks that it concerns. They come from RankRemarks, from the
  // communicators and, in a simulation with call sites, from the store history.
  std::map<std::string, std::set<int>> notes;
  std::vector<std::string> check_remarks;  // one line each: checks that some ranks missed, and RankRemarks
  // Remarks on what ranks did, as text, each with the ranks that it concerns.
  std::map<std::string, std::set<int>> habits;
  std::set<std::string> raced_groups;  // as in Communicators::raced_groups()
  // By rank and fiber_of_rank: the call by which the fiber was polling the store, with pauses, when the world ended.
  // Fibers of ranks that made a call on a group since their first poll have no entry, nor have threads of a rank whose
  // main fiber does not wait for them.
  std::map<std::pair<int, std::uint32_t>, exec::Wait> polls;
  std::vector<exec::StaticThread> static_threads;  // including those of earlier worlds of the process
  std::vector<FaultLine> faults;                   // all planned faults, in the order of the plan
  std::uint64_t fired_hash = 0;                    // what faults did, where and when; 0: none fired
  // Ranks that a fault ended and that did not begin again, each with the call in which it ended; empty: in none.
  std::map<int, std::string> crashed;
  std::vector<RankMemory> memory;  // by rank; empty: not counted
};

}  // namespace rehearse
