// SPDX-License-Identifier: BSD-3-Clause
#include "group_calls.h"

#include <algorithm>
#include <utility>

#include <rehearse/comm/event_log.h>

#include <rehearse_internal/comm/title.h>
#include <rehearse_internal/exec/check.h>
#include "comm/agree/pairs.h"
#include "comm/agree/wording.h"
#include "comm/call/fingerprint.h"

namespace rehearse::real {
namespace {

constexpr auto kNoEvent = comm::Event::kNotRecorded - 1;

exec::CallSite no_place(int) { return {}; }

}  // namespace

void GroupCalls::add(int rank, const CallMade& made, VirtualTime now) {
  if (mismatch_) return;
  OpenCall call;
  const auto found = std::ranges::find(group_.ranks, rank);
  if (found == group_.ranks.end()) return;
  call.rank = static_cast<int>(found - group_.ranks.begin());
  call.sequence = made.sequence;
  call.operation = operation_of(made.call, texts_);
  call.fingerprint = comm::agreement_hash(call.operation, made.call.label ? comm::text_hash(*made.call.label) : 0);
  call.since = now;
  if (!comm::is_point_to_point(call.operation.type)) return add_collective(std::move(call), now);
  if (call.operation.type == c10d::OpType::SEND) return add_send(std::move(call));
  add_receive(std::move(call));
}

void GroupCalls::add_collective(OpenCall call, VirtualTime now) {
  const auto sequence = call.sequence;
  auto& slot = slot_of(sequence);
  if (slot.calls.has(call.rank)) return;
  const auto& own = slot.made[static_cast<std::size_t>(call.rank)].emplace(std::move(call));
  const bool did_fit = slot.calls.fit();
  if (slot.calls.add(own.made(), no_place)) {
    if (slot.failure) fail_barrier(slot, own);
    if (slot.calls.full()) close(sequence);
    return;
  }
  if (did_fit && first_mismatch_.begin()) slot.settles_at = now + comm::kVotePeriod;
  if (slot.settles_at && slot.calls.all_have_voted()) mismatch_ = slot.calls.mismatch();
}

GroupCalls::Slot& GroupCalls::slot_of(std::uint64_t sequence) {
  const auto [entry, is_new] = slots_.try_emplace(sequence, group_);
  if (is_new) entry->second.calls.open(sequence);
  return entry->second;
}

// Call it when all ranks have made the call.
void GroupCalls::close(std::uint64_t sequence) {
  const auto slot = slots_.find(sequence);
  REHEARSE_CHECK(slot != slots_.end() && slot->second.calls.full(), sequence);
  if (!slot->second.failure) {
    for (const int rank : group_.ranks) tell_(rank, Go{Matched::collective, key_, sequence, -1});
  }
  slots_.erase(slot);
  met_ = sequence;
}

void GroupCalls::give_up(const BarrierGivenUp& message) {
  if (mismatch_ || message.sequence <= met_) return;
  auto& slot = slot_of(message.sequence);
  const auto is_barrier = [](const auto& call) { return !call || comm::is_monitored_barrier(call->operation); };
  if (slot.failure || !std::ranges::all_of(slot.made, is_barrier)) return;
  auto& failure =
      slot.failure.emplace(BarrierFailed{key_, message.sequence, group_.name, comm::barrier_without_time()});
  failure.is_timeout = true;
  const auto& by = slot.made.front();
  if (by && !message.has_no_time) {
    std::vector<int> missing;  // ranks within the group
    for (int rank = 0; rank < group_.size(); ++rank) {
      if (slot.calls.has(rank)) continue;
      missing.push_back(rank);
      failure.ranks.push_back(group_.global_rank(rank));
    }
    failure.why = comm::given_up_barrier(missing, message.names_all, by->operation.timeout);
    given_up_.push_back(
        {group_.global_rank(0), comm::title_of(by->operation, message.sequence, group_), failure.why, failure.ranks});
  }
  for (const auto& call : slot.made) {
    if (call) fail_barrier(slot, *call);
  }
}

void GroupCalls::fail_barrier(const Slot& slot, const OpenCall& call) const {
  auto failure = *slot.failure;
  if (call.rank != 0) {
    failure.why = comm::barrier_given_up_by_rank_0(call.rank);
    failure.ranks = {group_.global_rank(0)};
    failure.is_timeout = false;
  }
  tell_(group_.global_rank(call.rank), std::move(failure));
}

std::optional<comm::Mismatch> GroupCalls::pending_mismatch() const {
  for (const auto& [sequence, slot] : slots_) {
    if (slot.settles_at) return slot.calls.mismatch();
  }
  return std::nullopt;
}

void GroupCalls::settle(VirtualTime now) {
  if (mismatch_) return;
  for (const auto& [sequence, slot] : slots_) {
    if (slot.settles_at && now >= *slot.settles_at) mismatch_ = slot.calls.mismatch();
  }
}

void GroupCalls::add_send(OpenCall send) {
  const int receiver = send.operation.peer;
  const comm::Envelope envelope{send.rank, send.operation.tag};
  auto recv = messages_.take_receive(receiver, envelope);
  if (recv) return match(std::move(send), std::move(recv->call), true);
  messages_.keep_send(receiver, envelope, std::move(send));
}

void GroupCalls::add_receive(OpenCall recv) {
  const int receiver = recv.rank;
  const comm::Envelope envelope{recv.operation.peer, recv.operation.tag};
  const auto sources = messages_.sources(receiver, envelope);
  if (sources.empty()) return messages_.keep_receive(receiver, envelope, std::move(recv));
  auto send = messages_.take_send(receiver, sources.front(), envelope.tag);
  match(std::move(send->call), std::move(recv), false);
}

void GroupCalls::match(OpenCall send, OpenCall recv, bool send_came_last) {
  REHEARSE_CHECK(send.operation.type == c10d::OpType::SEND && recv.operation.type != c10d::OpType::SEND, send.sequence);
  const bool by_gloo = recv.operation.outputs[0].is_cpu();  // otherwise NCCL carries it, which needs equal sizes
  auto fields = comm::pair_differences(send.operation, recv.operation, by_gloo);
  if (!fields.empty()) {
    const auto met = (send_came_last ? recv : send).made(), last = (send_came_last ? send : recv).made();
    mismatch_ = comm::mismatch_of_pair({met, {}}, {last, {}}, std::move(fields), group_);
    disagreeing_.push_back(std::move(send));
    disagreeing_.push_back(std::move(recv));
    return;
  }
  note_short(send, recv);
  tell_(group_.global_rank(send.rank), Go{Matched::point_to_point, key_, send.sequence, -1});
  tell_(group_.global_rank(recv.rank), Go{Matched::point_to_point, key_, recv.sequence, send.rank});
}

void GroupCalls::note_short(const OpenCall& send, const OpenCall& recv) {
  const std::int64_t received = send.operation.inputs[0].numel(), elements = recv.operation.outputs[0].numel();
  if (received >= elements) return;
  const auto [entry, is_new] = short_messages_.try_emplace({recv.rank, send.rank, elements, received});
  auto& messages = entry->second;
  if (is_new) {
    messages.call = comm::title_of(recv.operation, recv.sequence, group_);
    messages.elements = elements;
    messages.received = received;
    messages.ranks = {group_.global_rank(recv.rank)};
  }
  ++messages.times;
}

std::vector<comm::ShortMessages> GroupCalls::short_messages() const {
  std::vector<comm::ShortMessages> all;
  for (const auto& [key, messages] : short_messages_) all.push_back(messages);
  return all;
}

GroupCalls::Open GroupCalls::open_of(const OpenCall& call) const {
  Open open{{}, call.since, call.operation.timeout};
  auto& pending = open.call;
  pending.rank = group_.global_rank(call.rank);
  pending.group = group_.name;
  pending.sequence = call.sequence;
  pending.call = comm::title_of(call.operation, call.sequence, group_);
  pending.record_id = pending.sent_as = kNoEvent;
  return open;
}

GroupCalls::Open GroupCalls::open_collective(const Slot& slot, const OpenCall& call) const {
  auto open = open_of(call);
  open.call.description = slot.calls.describe(open.call.call);
  open.call.waits_for = slot.calls.waits_for(call.rank);
  return open;
}

GroupCalls::Open GroupCalls::open_message(const OpenCall& call) const {
  auto open = open_of(call);
  auto& pending = open.call;
  pending.is_send = call.operation.type == c10d::OpType::SEND;
  const auto near_miss = messages_.near_miss(call.operation, call.rank, group_);
  pending.description = comm::waiting_for_message(pending.call, pending.is_send, near_miss);
  if (pending.is_send) pending.receiver = near_miss;
  open.needs_all = call.operation.peer >= 0;
  pending.waits_for = comm::awaited_by_message(call.operation, call.rank, group_);
  return open;
}

std::vector<GroupCalls::Open> GroupCalls::open() const {
  std::vector<Open> all;
  for (const auto& [sequence, slot] : slots_) {
    if (slot.failure && slot.calls.fit()) continue;  // nobody waits in this barrier
    for (const auto& call : slot.made) {
      if (call) all.push_back(open_collective(slot, *call));
    }
  }
  messages_.visit([&](const auto& letter, bool) { all.push_back(open_message(letter.call)); });
  for (const auto& call : disagreeing_) {
    all.push_back(open_message(call));
    all.back().call.description = comm::disagreeing(all.back().call.call);
  }
  return all;
}

}  // namespace rehearse::real
