// SPDX-License-Identifier: BSD-3-Clause
#include "point_to_point_matcher.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse/exec/observer.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/kind_of_time.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "comm/agree/pairs.h"
#include "comm/agree/wording.h"
#include "comm/call/fingerprint.h"
#include "comm/work/pending_work.h"

namespace rehearse::comm {

void DeadlineQueue::add(RankWork& work) {
  REHEARSE_CHECK(!work.by_deadline.is_linked() && work.deadline() != VirtualTime::max(), work.rank(),
                 work.getSequencenumber());
  auto position = works_.end();
  while (position != works_.begin() && std::prev(position)->deadline() > work.deadline()) --position;
  works_.insert(position, work);
  if (armed() && due() <= work.deadline()) return;
  timers_.cancel(*this);
  timers_.arm(*this, work.deadline());
}

// Does not adjust the timer while works remain: at worst it fires early without effect.
void DeadlineQueue::remove(RankWork& work) noexcept {
  REHEARSE_CHECK(work.by_deadline.is_linked(), work.rank(), work.getSequencenumber());
  work.by_deadline.unlink();
  if (works_.empty()) timers_.cancel(*this);
}

void DeadlineQueue::clear() noexcept {
  works_.clear();
  timers_.cancel(*this);
}

void DeadlineQueue::fire() {
  while (!works_.empty()) {
    const auto work = c10::intrusive_ptr<RankWork>::reclaim_copy(&works_.front());
    if (work->deadline() > timers_.limit_now(clock_.now())) return timers_.arm(*this, work->deadline());
    auto* const match = work->match();
    REHEARSE_CHECK(match != nullptr, work->rank(), work->getSequencenumber());
    match->expire(*work);
  }
}

PointToPointMatcher::PointToPointMatcher(const MatcherContext& context, bool buffered_sends)
    : context_(context),
      group_(context.group),
      services_(context.services),
      buffered_sends_(buffered_sends),
      calls_(group_.ranks.size()),
      deadlines_(services_.timers(), services_.clock),
      mailboxes_(group_.ranks.size()) {}

void PointToPointMatcher::join(c10::intrusive_ptr<RankWork> work) {
  const auto sequence = ++calls_[static_cast<std::size_t>(work->rank())];
  auto& recorder = context_.recorder;
  const auto& call = work->operation;
  const auto signature = recorder.signature_of(call, work->signature);
  work->enter(this, sequence, &recorder.record(call, work->rank(), sequence, signature, work->signature),
              services_.timers().passed_by_choice());
  if (call.type == c10d::OpType::SEND) {
    join_send(work);
  } else {
    join_receive(work);
  }
  if (!work->incomplete() || work->deadline() == VirtualTime::max()) return;
  deadlines_.add(*work);
}

void PointToPointMatcher::no_longer_due(RankWork& work) noexcept { deadlines_.remove(work); }

void PointToPointMatcher::refuse(RankWork& late, const RankWork& ended) const {
  const auto at = std::chrono::duration<double, std::milli>(ended.record().ended().time_since_epoch());
  const int rank = ended.global_rank();
  late.fail(std::make_exception_ptr(
      TimeoutError(fmt::format("{} has no peer any more: {} of rank {} timed out at {} ms of {}", title_of(late),
                               title_of(ended), rank, at.count(), exec::kind_of_time(services_.clock)),
                   group_.name, late.getSequencenumber(), {rank})));
}

void PointToPointMatcher::join_send(c10::intrusive_ptr<RankWork> send) {
  const auto sent_as = send->record().id();
  const Envelope envelope{send->rank(), send->operation.tag};
  const int receiver = send->operation.peer;
  auto recv = mailboxes_.take_receive(receiver, envelope);
  if (recv && !recv->call.work->incomplete()) return refuse(*send, *recv->call.work);
  if (buffered_sends_) send = buffer(*send);
  if (!recv) return mailboxes_.keep_send(receiver, envelope, {std::move(send), sent_as});
  if (recv->source < 0) note_source(*recv->call.work, envelope.source, {});
  match(std::move(send), std::move(recv->call.work), true);
}

void PointToPointMatcher::join_receive(c10::intrusive_ptr<RankWork> recv) {
  const int receiver = recv->rank();
  const Envelope envelope{recv->operation.peer, recv->operation.tag};
  const int source = choose_source(*recv);
  auto send = source >= 0 ? mailboxes_.take_send(receiver, source, envelope.tag) : std::nullopt;
  if (!send) return mailboxes_.keep_receive(receiver, envelope, {std::move(recv)});
  if (!send->call.work->incomplete()) return refuse(*recv, *send->call.work);
  match(std::move(send->call.work), std::move(recv), false);
}

int PointToPointMatcher::choose_source(const RankWork& work) {
  const auto& recv = work.operation;
  if (recv.peer >= 0) return recv.peer;
  const auto sources = mailboxes_.sources(work.rank(), {recv.peer, recv.tag});
  if (sources.empty()) return -1;
  const std::vector<std::uint32_t> options(sources.begin(), sources.end());
  const int source = sources[services_.executor.decisions().choose(ChoiceKind::receive_any_source, options)];
  note_source(work, source, sources);
  return source;
}

// Writes a note for reports: from which rank a receive from any source took its message, and from which other ranks it
// could have taken one. `source` and `sources` are ranks in the group.
void PointToPointMatcher::note_source(const RankWork& recv, int source, const std::vector<int>& sources) const {
  if (!context_.recorder.takes_notes()) return;
  std::vector<int> others;
  for (const auto other : sources) {
    if (other != source) others.push_back(group_.global_rank(other));
  }
  std::ranges::sort(others);
  auto note = fmt::format("took the message of rank {}", group_.global_rank(source));
  if (!others.empty()) note += fmt::format("; {} had sent, too", describe_ranks(others));
  context_.recorder.note(recv.record().id(), std::move(note));
}

// Completes a buffered send at once, so that the sender may go on. Returns a work in its place, which has a copy of the
// data and which the receive will match.
c10::intrusive_ptr<RankWork> PointToPointMatcher::buffer(RankWork& send) {
  auto copy = c10::make_intrusive<RankWork>(send.owner(), send.rank(), send.operation.type);
  copy->operation = send.operation;
  copy->operation.mark.reset();  // the copy does not count as a call
  copy->operation.trace = nullptr;
  copy->operation.inputs[0] = send.operation.inputs[0].detach().clone();
  copy->fingerprint = send.fingerprint;
  copy->signature = send.signature;
  copy->enter(this, send.getSequencenumber(), nullptr);
  const auto now = services_.now();
  send.start(now);
  send.complete(now);
  return copy;
}

void PointToPointMatcher::match(c10::intrusive_ptr<RankWork> send, c10::intrusive_ptr<RankWork> recv,
                                bool send_came_last) {
  auto fields = pair_differences(send->operation, recv->operation, context_.services.fabric.takes_shorter_messages());
  if (!fields.empty()) {
    if (!send->is_unchanged() || !recv->is_unchanged())
      exec::this_rank::wait_for_the_end(
          exec::FixedObserver("the end of the run, because a checker has found an error"));
    const RankWork& met = send_came_last ? *recv : *send;
    const RankWork& last = send_came_last ? *send : *recv;
    const auto first = met.made(), second = last.made();
    const auto mismatch = mismatch_of_pair({first, context_.recorder.call_site(met.record().event())},
                                           {second, exec::CallSite::capture()}, std::move(fields), group_);
    disagreeing_ = {std::move(send), std::move(recv)};
    services_.mismatches.fail(mismatch);
  }
  if (send->operation.inputs[0].numel() < recv->operation.outputs[0].numel()) {
    services_.short_messages.note(group_, *send, *recv);
  }
  const auto* const sent_as = send->operation.label;
  const auto* const received_as = recv->operation.label;
  if (sent_as != nullptr && received_as != nullptr && *sent_as != *received_as) {
    services_.habits.labels_differ(send->global_rank(), group_.name, title_of(*send), *received_as);
  }
  if (free_.empty()) {
    pairs_.push_back(std::make_unique<MatchedPair>(context_, *this));
    free_.push_back(pairs_.back().get());
  }
  MatchedPair& pair = *free_.back();
  free_.pop_back();
  pair.join(std::move(send), std::move(recv));
  if (batches_.empty()) return pair.launch();
  for (auto* const each : batches_.add(pair)) each->launch();
}

std::string PointToPointMatcher::describe(const RankWork& work) const {
  for (const auto& each : disagreeing_) {
    if (each.get() == &work) return disagreeing(title_of(work));
  }
  return waiting_for_message(title_of(work), work.operation.type == c10d::OpType::SEND,
                             mailboxes_.near_miss(work.operation, work.rank(), group_));
}

std::vector<int> PointToPointMatcher::waits_for(const RankWork& work) const {
  return awaited_by_message(work.operation, work.rank(), group_);
}

void PointToPointMatcher::withdraw(RankWork& work) {
  work.leave_match();
  mailboxes_.erase_if([&work](const Unmet& call) { return call.work.get() == &work; });
}

void PointToPointMatcher::list_in_flight(int rank, Works& works) const {
  mailboxes_.visit([&](const auto& letter, bool) {
    const auto& work = letter.call.work;
    if (work->rank() == rank && work->incomplete() && !work->is_buffer()) works.push_back(work);
  });
  for (const auto& pair : pairs_) pair->list_in_flight(rank, works);
}

void PointToPointMatcher::list_pending(std::vector<PendingOperation>& pending, int only_of) const {
  mailboxes_.visit([&](const auto& letter, bool is_send) {
    const auto& work = *letter.call.work;
    if (only_of >= 0 && work.global_rank() != only_of) return;
    auto& call = pending.emplace_back(pending_of(work, *this));
    call.is_send = is_send;
    if (is_send) call.receiver = mailboxes_.near_miss(work.operation, work.rank(), group_);
    call.sent_as = letter.call.sent_as;
  });
  for (const auto& pair : pairs_) pair->list_pending(pending, only_of);
}

void PointToPointMatcher::close() noexcept {
  deadlines_.clear();
  mailboxes_.erase_if([](const Unmet& call) {
    call.work->leave_match();
    return true;
  });
  for (auto& work : disagreeing_) {
    if (work) work->leave_match();
    work.reset();
  }
  for (const auto& pair : pairs_) pair->close();
  batches_.clear();
}

}  // namespace rehearse::comm
