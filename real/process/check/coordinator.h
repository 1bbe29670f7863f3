// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rehearse_internal/formatting/rank_list.h>

#include "comm/agree/creation_calls.h"
#include "process/check/group_calls.h"
#include "process/check/messages.h"

namespace rehearse::real {

// Matches the calls of a job of processes, and decides how the job ended. It receives all ranks' calls and ends, tells
// ranks which calls match, and sends the same outcome to all of them. It knows neither processes nor clocks: callers
// give it messages and the time.
//
// A job ends when all bodies have ended. It also ends when
//   * a rank is interrupted;
//   * calls do not match, or a message makes no sense;
//   * an exception leaves a rank's body. An exception of FailureKind::communication ends the job only after the check
//     timeout, because the end of another rank may have caused it;
//   * a rank has sent nothing for the check timeout, because its process is gone;
//   * another rank gives up on a silent rank 0;
//   * a call is overdue.
// A call is overdue after the check timeout if nobody can complete it: a rank that it needs has ended, or each missing
// rank has ended or waits in a call that nobody can complete. Otherwise a missing rank may still be computing, or may
// wait for a rank that is computing. Then the call is overdue only when its own timeout has passed, too.
class Coordinator {
 public:
  using Send = std::function<void(int rank, const ToRank& message)>;

  Coordinator(int ranks, VirtualDuration check_timeout, Send send);

  void receive(const FromRank& message, VirtualTime now);

  // Ends the job, or sends its outcome, if a time limit has passed. Call it regularly.
  void check_deadlines(VirtualTime now);

  // Call this if the coordinator itself did not run for `time`: that time does not count as a silence of the ranks.
  void note_pause(VirtualDuration time);

  // Call this if the coordinator cannot process a message of `rank`. The job ends, with `why` as the rank's failure.
  void give_up(int rank, const std::string& why, VirtualTime now);

  // True once the outcome has been sent to all ranks.
  bool over() const noexcept { return over_; }

 private:
  struct RankState {
    VirtualTime last_message{};  // when it arrived
    VirtualTime last_action{};   // when the rank last did something
    std::optional<RankEnded> end;
  };
  // A group that not all expected ranks have made yet.
  struct Creation {
    comm::CreationCalls calls;
    GroupMade made;             // what the first rank passed
    std::vector<int> expected;  // ranks that must make it
    VirtualTime since{};
    std::optional<VirtualTime> settles_at{};  // when the vote is over and the mismatch ends the job
  };

  void handle(int, const StillAlive&, VirtualTime) {}
  void handle(int rank, const GroupMade& made, VirtualTime now);
  void handle(int rank, const CallMade& made, VirtualTime now);
  void handle(int rank, const RankEnded& ended, VirtualTime now);
  void handle(int rank, const Interrupted&, VirtualTime now);
  void handle(int rank, const BarrierGivenUp& given_up, VirtualTime now);
  void open(const GroupMade& group);
  // A rank's arguments differ from those of earlier ranks. `did_fit`: the earlier ranks agreed.
  void begin_mismatch(Creation& creation, bool did_fit, VirtualTime now);
  std::vector<int> all_ranks() const { return ranks_below(static_cast<int>(states_.size())); }
  bool has_ended(int rank) const { return states_[static_cast<std::size_t>(rank)].end.has_value(); }

  bool all_have_ended() const;

  void check_for_end(VirtualTime now);
  void check_for_lost_ranks(VirtualTime now);
  void check_for_failures(VirtualTime now);
  void check_for_overdue_calls(VirtualTime now);

  bool is_stuck(int rank, const std::vector<GroupCalls::Open>& open, VirtualTime now) const;
  std::vector<bool> may_come(const std::vector<GroupCalls::Open>& open, VirtualTime now) const;
  bool is_hopeless(const GroupCalls::Open& call, const std::vector<bool>& may_come) const;

  void end_with_mismatch(const comm::Mismatch& mismatch, VirtualTime now);
  JobOutcome::Failure failure_of(int rank, const RankEnded& end) const;
  void end_with_failure(int rank, const RankEnded& end, VirtualTime now);
  void end_with_silent_rank0(int by, const RankEnded& ended, VirtualTime now);
  void end_with_overdue_call(const GroupCalls::Open& overdue, VirtualTime now);
  void note_pending_mismatches();
  void begin_end(exec::Ending ending, std::string why, VirtualTime now);
  void finish(VirtualTime now);
  std::vector<GroupCalls::Open> open_calls() const;  // in order of the calls
  JobOutcome::Blocked where_is(int rank, const std::vector<GroupCalls::Open>& open) const;

  const VirtualDuration check_timeout_;
  const Send send_;
  std::vector<RankState> states_;
  comm::FirstMismatch first_mismatch_;
  std::map<std::string, std::unique_ptr<GroupCalls>> groups_;  // by key
  std::map<std::string, Creation> creations_;                  // by call and number; some also by group
  std::optional<JobOutcome> job_outcome_;                      // set once the end has begun
  VirtualTime began_to_end_{};
  bool over_ = false;
};

// How long ranks may take to return from their bodies once the job ends. It is short after an interrupt, because
// somebody waits for the report.
VirtualDuration time_to_end(exec::Ending ending, VirtualDuration check_timeout);

}  // namespace rehearse::real
