// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/place.h>

namespace rehearse::comm {

// A rank that cannot go on: its call, and the ranks without which that call cannot end. A rank may occur more than
// once, because of its threads.
struct BlockedCall {
  int rank = -1;
  std::string call;            // `allreduce #3 on group "a"`
  std::vector<int> waits_for;  // empty: unknown
  Place where{};               // the call's place in the user's code
  bool any_rank = false;       // any other rank could end it (a wait for a store's key); then waits_for is empty
  exec::Wait::Kind kind = exec::Wait::Kind::other;
  std::string object{};  // as in exec::Wait
};

// `from` waits for `to` in `call`.
struct WaitEdge {
  int from = -1;
  int to = -1;
  std::string call;
  Place where{};        // the call's place
  bool or_any = false;  // another rank than `to` could end the wait as well
  exec::Wait::Kind kind = exec::Wait::Kind::other;
  std::string object{};
};

// A rank whose wait depends on no known rank, and the ranks that wait for this rank. The wait is for a key, a
// condition, a computation, or a lock of its own, for example.
struct DeadEnd {
  int rank = -1;
  std::string call;  // the rank's first wait; a wait that any rank could end has precedence
  Place where{};
  bool any_rank = false;  // as in BlockedCall
  exec::Wait::Kind kind = exec::Wait::Kind::other;
  std::vector<WaitEdge> held_up;  // one edge for each rank that waits for `rank`
};

// Why no rank can go on.
struct WaitAnalysis {
  // Ranks that wait for each other in a ring, across groups, point-to-point operations and stores: edge k's `to` is
  // edge k+1's `from`, and the last edge leads back to the first. Shortest first; each rank is in at most one cycle.
  std::vector<std::vector<WaitEdge>> cycles;

  // Waits that can never end, because they are for ranks that have ended.
  std::vector<WaitEdge> on_ended;

  // The ends of other chains of waits. Those for which the most ranks wait come first; otherwise ordered by rank.
  std::vector<DeadEnd> dead_ends;

  // A ring through the first dead end, for a standstill in which every dead end is a wait that any rank could end, and
  // no rank is left to end one. Empty for other standstills, if `cycles` or `on_ended` explain the standstill, or if
  // nobody waits for the first dead end and all dead ends are the same call (such as a wait for the same key of the
  // store).
  std::vector<WaitEdge> ring_of_any;

  // The cost of finding the cycles: how many times an edge was followed.
  std::uint64_t edges_followed = 0;
};

// `ended`: ranks that have returned or failed. A fiber that waits for its own rank (a thread, a lock) is in no cycle;
// if another wait of that rank is known, only the other wait counts. Cost: for each cycle, one search from every rank,
// which follows each edge at most once. A cycle of two ranks ends the search for the shortest cycle at once.
WaitAnalysis analyse_waits(const std::vector<BlockedCall>& blocked, const std::vector<int>& ended);

// `rank 0 waits for rank 1 (allreduce #3 on group "a") at train.cpp:41 in step`, `rank 0 waits in store wait for key
// "k" at ...; any other rank could end this wait, but rank 1, for example, is blocked, too`.
std::string to_string(const WaitEdge& edge);

}  // namespace rehearse::comm
