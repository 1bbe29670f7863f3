// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/job/report.h>

// Finds the ranks to blame for a run's end, as far as its report tells. The same rules serve simulations and dumps of
// real jobs.
namespace rehearse::sim {

// A rank's call that waited for others until the run ended or the call timed out.
struct AwaitedRanks {
  int rank = -1;
  std::string call;  // `allreduce #2 on group "world"`
  std::vector<int> waits_for;
  VirtualTime at{};
  Place where;
};

// One for each rank that waited for known ranks, in the order of the lines.
std::vector<AwaitedRanks> waits_of(const std::vector<RankLine>& lines);

// Ranks that came to a call after others had given up waiting for them; ascending.
std::vector<int> late_ranks(const std::vector<AwaitedRanks>& waits);

// The ranks for which the rank waits, or waited when its call timed out; empty: none, or unknown.
const std::vector<int>& awaited_by(const RankLine& line);

// True if the rank failed because of other ranks: while it waited for them, or by an error of the connection to them.
bool failed_by_others(const RankLine& line);

// The culprits, ascending; empty: nobody is to blame, or nobody knows who is.
// - For a mismatch, and for waits if some ranks never made a group: the ranks whose call differs from the majority's;
//   all ranks if there is no majority.
// - For a failed check: the ranks of the first finding; without findings, the ranks that failed or, if none did, the
//   ranks at fault by the report's causes.
// - For a crash, an exception or memory that ran out: the ranks that failed on their own; if there are none, the ranks
//   to which others lost their connections or, without such ranks, all ranks that failed. But if an exception followed
//   a timeout, and the report's causes have the ranks that had ended without the call: those ranks.
// - For a transfer that planned faults held up: the ranks whose data moved later. For another transfer that took too
//   long: the rank in the headline.
// - For other waits: the ranks to which all waits lead, or those that wait for ended ranks if they are fewer. If ranks
//   wait for each other in a ring: those at the ends of a send that its receiver does not receive; without one, the
//   ranks that are not in the call in which more than half of the ring waits; if there is no such call, or if all ranks
//   are in it, the whole ring. If some ranks compile while others do not: the smaller side.
// - For dumps: DumpFacts::culprits.
std::vector<int> culprits_of(const Report& report);

// True if a checker ended the run. Then the headline has the places.
bool is_found_by_checker(const Report& report);

}  // namespace rehearse::sim
