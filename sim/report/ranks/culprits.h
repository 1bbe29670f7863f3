// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/job/report.h>

// Whose fault a run's end was, as far as its report says: the same for a simulation and for what processes left.
namespace rehearse::sim {

// A rank's call that waited for others until the run ended, or its timeout came.
struct AwaitedRanks {
  int rank = -1;
  std::string call;  // `allreduce #2 on group "world"`
  std::vector<int> waits_for;
  VirtualTime at{};
  std::string where;
};

// One for each rank that waited for ranks that are known, in the order of the lines.
std::vector<AwaitedRanks> waits_of(const std::vector<RankLine>& lines);

// Ranks that came to a call in which others had given up waiting for them; ascending.
std::vector<int> late_ranks(const std::vector<AwaitedRanks>& waits);

// Did the rank fail because of others: while it waited for ranks, or by an error of the connection to them?
bool failed_by_others(const RankLine& line);

// Ascending: ranks whose call differs from that of the majority (without one, all of them); ranks whose exception or
// crash it was; of ranks that wait, those to which all waits lead (of a ring, its ranks). Empty: nobody's, or not
// known.
std::vector<int> culprits_of(const Report& report);

}  // namespace rehearse::sim
