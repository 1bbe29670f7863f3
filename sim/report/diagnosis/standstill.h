// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <rehearse/job/report.h>
#include <rehearse_internal/comm/communicators.h>
#include <rehearse_internal/comm/wait_for_graph.h>
#include <rehearse_internal/exec/executor.h>

#include "report/ranks/cause_text.h"

namespace rehearse::sim {

class RankOutcomes;

// The fate of the ranks for which nobody called add(): in a run, they have ended; in dumps, they have not come to the
// call.
enum class OtherRanks { ended, not_come };

// Why nobody knows whether a rank came to a call: its dump no longer has the group's calls, or it left no dump.
enum class Unknown { calls_dropped, no_dump };

// Explains a standstill. Blames, in this order, ranks that have ended, a cycle of waits, and ranks that wait for no
// other rank. Call add() for each blocked rank.
class Standstill {
 public:
  // `crashed`: see RunRecord. `unknown`: the ranks about which nobody knows whether they came.
  explicit Standstill(int ranks, std::map<int, std::string> crashed = {}, OtherRanks others = OtherRanks::ended,
                      std::map<int, Unknown> unknown = {});

  // `where`: the place of the wait, for the reader.
  void add(const exec::BlockedFiber& fiber, Place where);
  void add(comm::BlockedCall call);

  // The rank polls in this call, with pauses.
  void polls(int rank, const exec::Wait& call) { polling_.insert_or_assign(rank, call); }

  struct Diagnosis {
    CauseText headline;  // the culprits, where they are, and who waits for them; empty: nobody is blocked
    std::vector<std::string> wait_cycle;  // one line for each edge
    bool polled = false;                  // the culprit polls
  };

  // `until`: the time at which a timeout ended the waits; some ranks may merely have been late. Empty: no rank could go
  // on.
  Diagnosis diagnose(std::optional<VirtualTime> until = {}) const;

  // True if all waits, followed from `rank`, end at ranks that have returned or crashed, or that wait for each other.
  bool is_hopeless(int rank, const std::vector<RankLine>& lines) const;

  // If nobody knows for which rank `rank` waited, names the ranks that might have ended the wait and were still under
  // way at `until`: "; rank 1 was still in a sleep at ...". Empty: there are none.
  CauseText others_on_the_way(int rank, VirtualTime until) const;

 private:
  CauseText describe_missing(const std::vector<comm::WaitEdge>& on_ended) const;
  CauseText absent_for_good(const std::vector<int>& ranks) const;

  const std::map<int, std::string> crashed_;
  const OtherRanks others_;
  const std::map<int, Unknown> unknown_;
  std::vector<comm::BlockedCall> calls_;  // a call with an empty text: its rank could have gone on
  std::map<int, exec::Wait> polling_;     // for each polling rank, the call with which it polls; empty: unknown
  std::set<int> ended_;
};

// Names the first send that no rank receives: its peer receives something else, or the send went into a buffer. Also
// says how many more such sends there are. For example "rank 1 receives from rank 2 at ring.cpp:9 in step, but the send
// to it is rank 0's send #1 to rank 1 on group "world" at ring.cpp:7 in step; ". Empty: there is none.
CauseText unmatched_send(const std::vector<comm::PendingOperation>& pending, const RankOutcomes& ends);

// If a send has no receive while another rank receives from its sender: the send may have the wrong peer. For example
// "; rank 2 receives from rank 1 at ring.cpp:15, while rank 1 sends to rank 3 at ring.cpp:13". Otherwise empty.
CauseText send_awaited_elsewhere(const std::vector<comm::PendingOperation>& pending, const RankOutcomes& ends);

}  // namespace rehearse::sim
