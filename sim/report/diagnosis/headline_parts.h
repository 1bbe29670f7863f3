// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <rehearse/job/report.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/job/run_record.h>

#include "report/ranks/cause_text.h"
#include "report/ranks/rank_outcomes.h"

// Parts of headlines that several verdicts need, or that are long.
namespace rehearse::sim {

// For example "; ranks 0-1 were still running at train.cpp:60 in poll, rank 2 at ...". Empty if no rank was still
// running.
std::string still_running(const std::vector<RankLine>& lines);

// For example "; rank 2 failed, too: out of disk". Leaves out errors that follow from the failure of another rank.
std::string other_failures(const exec::RankFailure& first, const std::vector<exec::RankFailure>& all);

// Names the timeout from which the failure follows: a program may catch a timeout and throw an error of its own. For
// example "; before that, at 1800 s, rank 0 timed out in allreduce #7 on group "world" at train.cpp:41 in step: rank 1
// has ended without it". If all ranks without the call have returned, these ranks are a cause. Empty if the failure
// does not follow from a timeout.
CauseText timeout_before(const exec::RankFailure& failure, const RunRecord& record, const RankOutcomes& ends);

// For a run that a timeout ended. If planned faults delayed what ranks sent in calls that have not ended: "the data of
// rank 0 in allreduce #3 on group "world" moved later (delay rank=0 at=allreduce#3 for=31min); ". Otherwise empty.
CauseText held_up(const RunRecord& record);

// Describes each partition that stood at `end`: "the network is cut between ranks 0-1 and ranks 2-3 since 20 us; ".
// Empty: none stood. `ranks` is the size of the world.
CauseText standing_cuts_text(const std::vector<FaultLine>& faults, int ranks, VirtualTime end);

// The ranks for which `rank` waited in a collective.
struct Awaited {
  std::vector<int> came_late, others;
  bool never_called = false;  // the others never called it; false: nobody knows
};
// Empty if `wait` is no collective, or if nobody knows. `record` must have the calls of all ranks.
Awaited awaited_in(const exec::GivenUpWait& wait, int rank, const RunRecord& record);

// "; rank 2 never called allreduce #3 on group "world"".
CauseText never_called(const std::vector<int>& ranks, const std::string& call, int waiting);

bool have_all_returned(const std::vector<int>& ranks, const RankOutcomes& ends);

// For a call that `ranks` did not make: "has ended without", or "never came to" if not all of them have returned.
std::string_view absence_of(const std::vector<int>& ranks, const RankOutcomes& ends);

}  // namespace rehearse::sim
