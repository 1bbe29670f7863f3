// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/job/report.h>
#include <rehearse_internal/comm/pending.h>
#include <rehearse_internal/comm/wait_for_graph.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/job/run_record.h>

#include "report/ranks/cause_text.h"
#include "report/ranks/rank_outcomes.h"

// Parts of headlines that several verdicts need, or that are long. Runs, reports merged from those of processes, and
// explained dumps have these words in common.
namespace rehearse::sim {

// Describes a call that some ranks of its group never made. The first side of the difference has the ranks that made
// the call, with the call and its place. The other sides have the ranks that did not make the call, with their last
// calls.
Difference absence_from(const comm::PendingGroup& group, const RunRecord& record, const RankOutcomes& ends);
Difference absence_from(const comm::PendingOperation& call, const RunRecord& record, const RankOutcomes& ends);

// "3 ranks returned after 4 ms of real time"; `crashed`: ", rank 3 crashed,".
std::string ranks_returned(int ranks, std::string_view crashed, VirtualTime end, std::string_view kind_of_time);

// "; and 2 more"; empty if there are no others.
std::string and_more(int others);

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

// For ranks that left out a call: a fault, not the program, may have kept one of them from it. For example " (fault on
// rank 1: fail_op rank=1 at=allreduce#3)". Empty if no fault did.
std::string faults_behind(const Cause& drift, const std::vector<FaultLine>& faults);

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

// "rank 0 came to barrier #1 on group "world" only when the timeout at 10 s had ended the wait of rank 1".
CauseText came_late(const std::vector<int>& ranks, const std::string& call, VirtualTime timeout,
                    const std::vector<int>& waiting);

// For example "ranks 0-1 wait for it in barrier #2 on group "world", rank 3 in recv #1 from rank 2 on group "world"".
// `awaited`: the number of ranks for which they wait. `is_over`: the waits have ended.
std::string waits_text(const std::vector<comm::WaitEdge>& waits, std::size_t awaited, bool is_over);

// For a run that was interrupted: "; rank 2 was at job.cpp:7 in step; rank 0 waited for it in allreduce #2 on group
// "world"". `waits`: the waits for that rank.
std::string missing_at_end(const RankLine& line, const std::vector<comm::WaitEdge>& waits);

// A rank's last call on any group; an empty title: it made none.
struct LastCall {
  int rank = -1;
  std::string title;
  Place where;
};
// "; rank 3 called last: allreduce #6 on group "world" at train.py:41 in step; ranks 4-5 called nothing". Shows the
// first two different calls.
std::string last_calls_text(const std::vector<LastCall>& calls);

// Two calls on two groups that all ranks made, and two ranks in different orders. On each rank's device the later call
// waits until the earlier one ends, so neither can end.
struct CrossedCalls {
  int rank = -1, other = -1;  // `rank` called `first` before `second`, and `other` called it after
  std::string first, second;
};
CauseText crossed(const CrossedCalls& calls);

// All ranks of the group made the call, and on `ranks` it has not ended. `alike`: with equal arguments.
CauseText never_ended(const std::vector<int>& ranks, const std::string& call, const Place& where, bool alike);

// The sizes of an all-to-all on all its ranks together.
struct Imbalance {
  std::string call;
  std::uint64_t sent = 0, expected = 0;  // elements
};
std::string imbalance_text(const Imbalance& imbalance);

// All calls in the dumps of a job are complete. `without_dump`: the ranks that left none.
std::string all_complete(std::size_t calls, const std::vector<int>& without_dump);

// ", to which rank 1 never came"; or ", which rank 2 aborted", if all the awaited ranks have made the call.
std::string never_came(const comm::PendingOperation& call, const RunRecord& record);

bool have_all_returned(const std::vector<int>& ranks, const RankOutcomes& ends);

// For a call that `ranks` did not make: "has ended without", or "never came to" if not all of them have returned.
std::string_view absence_of(const std::vector<int>& ranks, const RankOutcomes& ends);

}  // namespace rehearse::sim
