// SPDX-License-Identifier: BSD-3-Clause
#include "coordinator.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/exec/check.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "comm/agree/wording.h"

namespace rehearse::real {
namespace {

bool has_failed(const std::optional<RankEnded>& end) { return end && end->end == exec::RankEnd::failed; }

std::string title_of(const GroupMade& made) {
  return made.call == "new_group" ? comm::new_group_title(made.number) : made.call;
}

double seconds(VirtualDuration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

VirtualDuration time_to_end(exec::Ending ending, VirtualDuration check_timeout) {
  return ending == exec::Ending::interrupted ? std::min<VirtualDuration>(check_timeout, std::chrono::seconds(1))
                                             : check_timeout;
}

Coordinator::Coordinator(int ranks, VirtualDuration check_timeout, Send send)
    : check_timeout_(check_timeout), send_(std::move(send)), states_(static_cast<std::size_t>(ranks)) {}

void Coordinator::receive(const FromRank& message, VirtualTime now) {
  if (over_ || message.rank < 0 || message.rank >= static_cast<int>(states_.size())) return;
  auto& state = states_[static_cast<std::size_t>(message.rank)];
  state.last_message = now;
  if (!std::holds_alternative<StillAlive>(message.body)) state.last_action = now;
  std::visit([&](const auto& body) { handle(message.rank, body, now); }, message.body);
}

// Opens a group, after all its members have made it.
void Coordinator::open(const GroupMade& group) {
  REHEARSE_CHECK(!groups_.contains(group.key), group.key);
  comm::GroupIdentity identity{static_cast<std::uint32_t>(groups_.size()), group.name, group.ranks};
  groups_[group.key] = std::make_unique<GroupCalls>(std::move(identity), group.key, first_mismatch_,
                                                    [this](int rank, const ToRank& message) { send_(rank, message); });
  for (const int member : group.ranks) send_(member, Go{Matched::group, group.key, 0, -1});
}

void Coordinator::handle(int rank, const GroupMade& made, VirtualTime now) {
  if (job_outcome_) return;
  const bool by_all = made.call == "new_group";
  const auto key = fmt::format("{} #{}{}", made.call, made.number, by_all ? "" : " " + made.key);
  const auto [entry, is_new] =
      creations_.try_emplace(key, Creation{comm::CreationCalls(states_.size(), made.number), made, {}, now});
  auto& creation = entry->second;
  if (is_new) creation.expected = by_all ? all_ranks() : made.ranks;
  if (creation.calls.vote().has(rank)) return;
  const bool did_fit = creation.calls.fit();
  creation.calls.add(rank, made.ranks, made.given_name, [] { return exec::CallSite(); });
  if (!creation.calls.fit()) return begin_mismatch(creation, did_fit, now);
  if (!creation.calls.missing(made.ranks).empty()) return;
  // Ranks that are not members may make the call later.
  if (!groups_.contains(made.key)) open(made);
  if (creation.calls.missing(creation.expected).empty()) creations_.erase(key);
}

void Coordinator::begin_mismatch(Creation& creation, bool did_fit, VirtualTime now) {
  if (did_fit && first_mismatch_.begin()) creation.settles_at = now + comm::kVotePeriod;
  if (creation.settles_at && creation.calls.missing(creation.expected).empty())
    end_with_mismatch(creation.calls.mismatch(), now);
}

void Coordinator::handle(int rank, const CallMade& made, VirtualTime now) {
  if (job_outcome_) return;
  const auto group = groups_.find(made.group);
  if (group == groups_.end()) return;
  group->second->add(rank, made, now);
  if (const auto& mismatch = group->second->mismatch()) end_with_mismatch(*mismatch, now);
}

void Coordinator::handle(int, const BarrierGivenUp& given_up, VirtualTime) {
  if (job_outcome_) return;
  const auto group = groups_.find(given_up.group);
  if (group != groups_.end()) group->second->give_up(given_up);
}

void Coordinator::handle(int rank, const RankEnded& ended, VirtualTime now) {
  auto& own = states_[static_cast<std::size_t>(rank)].end;
  if (own) return;
  own = ended;
  const bool is_cause = ended.end == exec::RankEnd::failed && ended.kind != FailureKind::communication;
  if (job_outcome_ && is_cause) job_outcome_->failures.push_back(failure_of(rank, ended));
  if (!job_outcome_ && is_cause) end_with_failure(rank, ended, now);
  if (!job_outcome_ && ended.end == exec::RankEnd::aborted) end_with_silent_rank0(rank, ended, now);
  if (all_have_ended()) finish(now);
}

void Coordinator::handle(int, const Interrupted&, VirtualTime now) {
  if (!job_outcome_) begin_end(exec::Ending::interrupted, "the run was interrupted", now);
}

void Coordinator::check_deadlines(VirtualTime now) {
  if (over_) return;
  for (auto& state : states_) {
    if (state.last_message == VirtualTime{}) state.last_message = state.last_action = now;
  }
  if (!job_outcome_) check_for_end(now);
  if (!job_outcome_) return;
  if (all_have_ended() || now - began_to_end_ >= time_to_end(job_outcome_->ending, check_timeout_)) finish(now);
}

void Coordinator::note_pause(VirtualDuration time) {
  for (auto& state : states_) {
    state.last_message += time;
    state.last_action += time;
  }
  began_to_end_ += time;
}

void Coordinator::give_up(int rank, const std::string& why, VirtualTime now) {
  if (job_outcome_) return;
  const auto what = "its message cannot be compared with the calls of other ranks: " + why;
  end_with_failure(std::clamp(rank, 0, static_cast<int>(states_.size()) - 1),
                   {exec::RankEnd::failed, FailureKind::plain, what, now}, now);
}

bool Coordinator::all_have_ended() const {
  return std::ranges::all_of(states_, [](const RankState& state) { return state.end.has_value(); });
}

void Coordinator::check_for_end(VirtualTime now) {
  for (const auto& [name, calls] : groups_) {
    calls->settle(now);
    if (calls->mismatch()) return end_with_mismatch(*calls->mismatch(), now);
  }
  for (const auto& [key, creation] : creations_) {
    if (creation.settles_at && now >= *creation.settles_at) return end_with_mismatch(creation.calls.mismatch(), now);
  }
  check_for_lost_ranks(now);
  if (!job_outcome_) check_for_failures(now);
  if (!job_outcome_) check_for_overdue_calls(now);
}

void Coordinator::check_for_lost_ranks(VirtualTime now) {
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    auto& state = states_[rank];
    if (state.end || now - state.last_message < check_timeout_) continue;
    state.end = RankEnded{
        exec::RankEnd::failed, FailureKind::lost,
        fmt::format("its process is gone: no message came from it for {:.3g} s", seconds(now - state.last_message)),
        now};
    return end_with_failure(static_cast<int>(rank), *state.end, now);
  }
}

void Coordinator::check_for_failures(VirtualTime now) {
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    const auto& state = states_[rank];
    if (has_failed(state.end) && now - state.last_action >= check_timeout_)
      return end_with_failure(static_cast<int>(rank), *state.end, now);
  }
}

std::vector<GroupCalls::Open> Coordinator::open_calls() const {
  std::vector<GroupCalls::Open> open;
  for (const auto& [name, calls] : groups_) {
    auto own = calls->open();
    open.insert(open.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  }
  for (const auto& [key, creation] : creations_) {
    const auto& members = creation.made.ranks;
    const auto missing = creation.calls.missing(members);
    if (missing.empty()) continue;
    for (const int rank : creation.calls.called_by(members)) {
      GroupCalls::Open waits{{}, creation.since, kBackendDefaultTimeout};
      waits.call.rank = rank;
      waits.call.call = waits.call.description = title_of(creation.made);
      waits.call.waits_for = missing;
      open.push_back(std::move(waits));
    }
  }
  std::ranges::stable_sort(open, [](const auto& a, const auto& b) { return a.since < b.since; });
  return open;
}

// True if the rank is in a call, and for the check timeout it has done nothing but wait in that call.
bool Coordinator::is_stuck(int rank, const std::vector<GroupCalls::Open>& open, VirtualTime now) const {
  const auto& state = states_[static_cast<std::size_t>(rank)];
  return std::ranges::any_of(open, [&](const auto& each) {
    return each.call.rank == rank && now - std::max(each.since, state.last_action) >= check_timeout_;
  });
}

// For each rank: true if it may be computing, or if it waits (directly or through other ranks) for a rank that may be
// computing.
std::vector<bool> Coordinator::may_come(const std::vector<GroupCalls::Open>& open, VirtualTime now) const {
  std::vector<bool> may(states_.size());
  for (const int rank : all_ranks())
    may[static_cast<std::size_t>(rank)] = !has_ended(rank) && !is_stuck(rank, open, now);
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& each : open) {
      const auto own = static_cast<std::size_t>(each.call.rank);
      if (may[own] || has_ended(each.call.rank) || is_hopeless(each, may)) continue;
      may[own] = changed = true;
    }
  }
  return may;
}

// True if nobody will complete the call: a rank that it needs has ended, or no missing rank can still come.
bool Coordinator::is_hopeless(const GroupCalls::Open& call, const std::vector<bool>& may_come) const {
  const auto& awaited = call.call.waits_for;
  const auto comes = [&](int rank) { return may_come[static_cast<std::size_t>(rank)]; };
  const auto ended = [&](int rank) { return has_ended(rank); };
  if (call.needs_all && std::ranges::any_of(awaited, ended)) return true;
  return std::ranges::none_of(awaited, comes);
}

void Coordinator::check_for_overdue_calls(VirtualTime now) {
  const auto open = open_calls();
  const auto may = may_come(open, now);
  const GroupCalls::Open* overdue = nullptr;
  for (const auto& each : open) {
    const auto& state = states_[static_cast<std::size_t>(each.call.rank)];
    // A rank that has gone on to do other things does not wait.
    if (state.end || now - std::max(each.since, state.last_action) < check_timeout_) continue;
    const bool is_over = each.timeout.count() > 0 && now - each.since >= each.timeout;
    if (!is_over && !is_hopeless(each, may)) continue;
    if (overdue == nullptr || each.since < overdue->since) overdue = &each;
  }
  if (overdue == nullptr) return;
  // A process may have died; its silence will show that shortly, so wait before deciding.
  for (const int rank : overdue->call.waits_for) {
    const auto& state = states_[static_cast<std::size_t>(rank)];
    if (!state.end && now - state.last_message >= check_timeout_ / 2) return;
  }
  end_with_overdue_call(*overdue, now);
}

JobOutcome::Blocked Coordinator::where_is(int rank, const std::vector<GroupCalls::Open>& open) const {
  const GroupCalls::Open* first = nullptr;
  for (const auto& each : open) {
    if (each.call.rank == rank && (first == nullptr || each.since < first->since)) first = &each;
  }
  if (first == nullptr) return {rank, false, "", "", {}};
  return {rank, true, first->call.description, first->call.call, first->call.waits_for};
}

void Coordinator::begin_end(exec::Ending ending, std::string why, VirtualTime now) {
  REHEARSE_CHECK(!job_outcome_ && !over_, why);
  auto& job_outcome = job_outcome_.emplace();
  job_outcome.ending = ending;
  job_outcome.why = std::move(why);
  began_to_end_ = now;
  note_pending_mismatches();
  const auto open = open_calls();
  for (const int rank : all_ranks()) {
    Stop stop{job_outcome.why};
    if (!has_ended(rank)) {
      const auto& where = job_outcome.blocked.emplace_back(where_is(rank, open));
      stop.waits_on = where.waits_on;
      stop.waits_for = where.waits_for;
    }
    send_(rank, stop);
  }
}

// Something else ended the job before the vote on a mismatch was over. Report what is known about that mismatch.
void Coordinator::note_pending_mismatches() {
  for (const auto& [key, calls] : groups_) {
    if (auto mismatch = calls->pending_mismatch()) job_outcome_->mismatches.push_back(std::move(*mismatch));
  }
  for (const auto& [key, creation] : creations_) {
    if (creation.settles_at) job_outcome_->mismatches.push_back(creation.calls.mismatch());
  }
}

void Coordinator::end_with_mismatch(const comm::Mismatch& mismatch, VirtualTime now) {
  begin_end(exec::Ending::stopped, comm::to_string(mismatch), now);
  job_outcome_->mismatches = {mismatch};
}

// If a rank failed by a timeout, the text of the exception names the call. The ranks that have not made that call are
// missing.
JobOutcome::Failure Coordinator::failure_of(int rank, const RankEnded& end) const {
  JobOutcome::Failure failure{rank, end, "", {}};
  if (end.kind != FailureKind::timeout) return failure;
  for (const auto& each : open_calls()) {
    if (each.call.rank != rank || !end.what.starts_with(each.call.call)) continue;
    failure.gave_up = each.call.call;
    failure.waits_for = each.call.waits_for;
    return failure;
  }
  for (const auto& [key, calls] : groups_) {
    for (const auto& barrier : calls->given_up()) {
      if (barrier.rank != rank || !end.what.starts_with(barrier.why)) continue;
      failure.gave_up = barrier.call;
      failure.waits_for = barrier.missing;
    }
  }
  return failure;
}

void Coordinator::end_with_failure(int rank, const RankEnded& end, VirtualTime now) {
  auto failure = failure_of(rank, end);
  begin_end(exec::Ending::rank_failed, fmt::format("rank {} failed: {}", rank, end.what), now);
  job_outcome_->failures.push_back(std::move(failure));
}

// The world of rank `by` ended without a job outcome: that rank has not heard from rank 0, which is this process, for
// too long.
void Coordinator::end_with_silent_rank0(int by, const RankEnded& ended, VirtualTime now) {
  const std::string_view why = ended.what;
  constexpr std::string_view kOfRank0 = "rank 0 failed: ";
  const auto what = fmt::format("it did not answer, so rank {} gave up on it: {}", by,
                                why.starts_with(kOfRank0) ? why.substr(kOfRank0.size()) : why);
  states_[0].end = RankEnded{exec::RankEnd::failed, FailureKind::lost, what, now};
  end_with_failure(0, *states_[0].end, now);
}

void Coordinator::end_with_overdue_call(const GroupCalls::Open& overdue, VirtualTime now) {
  const auto& call = overdue.call;
  const auto tenths = std::chrono::duration_cast<std::chrono::duration<std::int64_t, std::deci>>(now - overdue.since);
  const auto what = comm::overdue(call.call, call.waits_for, seconds(tenths));
  begin_end(exec::Ending::rank_failed, what, now);
  std::erase_if(job_outcome_->blocked, [&](const auto& blocked) { return blocked.rank == call.rank; });
  job_outcome_->failures.push_back(
      {call.rank, {exec::RankEnd::failed, FailureKind::timeout, what, now}, call.call, call.waits_for});
}

void Coordinator::finish(VirtualTime now) {
  REHEARSE_CHECK(!over_);
  if (!job_outcome_) {
    // All failures came out of communication, so report the failure of the lowest rank as the cause.
    const auto failed = std::ranges::find_if(states_, [](const auto& state) { return has_failed(state.end); });
    if (failed != states_.end()) {
      end_with_failure(static_cast<int>(failed - states_.begin()), *failed->end, now);
    } else {
      job_outcome_.emplace();
    }
  }
  auto& job_outcome = *job_outcome_;
  for (auto& open : open_calls()) job_outcome.pending.push_back(std::move(open.call));
  std::erase_if(job_outcome.pending, [](const auto& call) { return call.group.empty(); });
  for (const auto& [key, calls] : groups_) {
    for (auto& messages : calls->short_messages()) job_outcome.short_messages.push_back(std::move(messages));
  }
  for (const auto& [key, creation] : creations_) {
    const auto& made = creation.made;
    comm::PendingGroup group{title_of(made),
                             made.name,
                             creation.calls.called_by(creation.expected),
                             creation.calls.missing(creation.expected),
                             {}};
    // Libraries ask for companions only when they need them, so missing ranks are normal.
    if (!group.missing.empty() && made.call != "companion") job_outcome.pending_groups.push_back(std::move(group));
  }
  for (const auto& state : states_) {
    job_outcome.ranks.push_back(state.end ? state.end->end : exec::RankEnd::aborted);
    job_outcome.ended_at.push_back(state.end ? state.end->at : now);
  }
  over_ = true;
  for (const int rank : all_ranks()) send_(rank, Over{job_outcome});
}

}  // namespace rehearse::real
