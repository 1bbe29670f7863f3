// SPDX-License-Identifier: BSD-3-Clause
#include "group_calls.h"

#include <algorithm>
#include <utility>

#include <rehearse/comm/event_log.h>

#include <rehearse_internal/comm/title.h>
#include "comm/agree/pairs.h"
#include "comm/agree/votes.h"
#include "comm/agree/wording.h"
#include "comm/call/fingerprint.h"

namespace rehearse::real {
namespace {

constexpr VirtualDuration kToTakeASide = std::chrono::seconds(1);

bool fits(const comm::Operation& send, int source, const comm::Operation& recv) {
  return send.tag == recv.tag && (recv.peer == source || recv.peer < 0);
}

}  // namespace

void GroupCalls::add(int rank, const CallMade& made, VirtualTime now) {
  if (mismatch_) return;
  OpenCall call;
  const auto place = std::find(group_.ranks.begin(), group_.ranks.end(), rank);
  if (place == group_.ranks.end()) return;
  call.rank = static_cast<int>(place - group_.ranks.begin());
  call.sequence = made.sequence;
  call.operation = operation_of(made.call, texts_);
  call.fingerprint = comm::agreement_hash(call.operation, made.call.label ? comm::text_hash(*made.call.label) : 0);
  call.since = now;
  if (!comm::is_point_to_point(call.operation.type)) return add_collective(std::move(call), now);
  sends_.resize(group_.ranks.size());
  receives_.resize(group_.ranks.size());
  if (call.operation.type == c10d::OpType::SEND) return add_send(std::move(call));
  add_receive(std::move(call));
}

std::vector<const OpenCall*> GroupCalls::present(const Slot& slot) {
  std::vector<const OpenCall*> calls;
  for (const auto& call : slot.calls) {
    if (call) calls.push_back(&*call);
  }
  return calls;
}

void GroupCalls::add_collective(OpenCall call, VirtualTime now) {
  const auto sequence = call.sequence;
  auto& slot = slots_[sequence];
  slot.calls.resize(group_.ranks.size());
  auto& own = slot.calls[static_cast<std::size_t>(call.rank)];
  if (own) return;
  own = std::move(call);
  ++slot.arrived;
  const auto calls = present(slot);
  const auto agrees = [&](const auto* other) { return comm::agree(own->made(), other->made()); };
  if (!std::all_of(calls.begin(), calls.end(), agrees) && !slot.disputed_since) slot.disputed_since = now;
  if (!slot.disputed_since) mismatch_ = mismatch_of_edges(slot, *own);
  if (mismatch_) {
    slot.disputed_since = now;
    return;
  }
  if (slot.arrived < slot.calls.size()) return;
  if (slot.disputed_since) return settle(now + kToTakeASide);
  go(sequence, slot);
}

std::optional<comm::Mismatch> GroupCalls::mismatch_of_edges(const Slot& slot, const OpenCall& own) const {
  const auto made = own.made();
  const auto parts = comm::parts_of(own.operation);
  const auto of_two = [&](const OpenCall& other, std::optional<comm::Mismatch::Field> field) {
    return comm::mismatch_of_two({made, {}}, {other.made(), {}}, std::move(*field), group_);
  };
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if (!comm::is_alltoall(parts[part].type)) continue;
    for (const auto* const other : present(slot)) {
      if (other == &own) continue;
      if (auto field = comm::edge_difference(made, other->made(), part, group_)) return of_two(*other, field);
      if (auto field = comm::edge_difference(other->made(), made, part, group_)) return of_two(*other, field);
    }
  }
  if (!comm::is_alltoall(own.operation.type)) return std::nullopt;
  for (const auto* const other : present(slot)) {
    if (auto field = comm::format_difference(made, other->made(), group_)) return of_two(*other, field);
  }
  return std::nullopt;
}

void GroupCalls::go(std::uint64_t sequence, const Slot& slot) {
  for (const auto& call : slot.calls) {
    tell_(group_.global_rank(call->rank), {Matched::collective, key_, sequence, -1});
  }
  slots_.erase(sequence);
}

void GroupCalls::settle(VirtualTime now) {
  if (mismatch_) return;
  for (const auto& [sequence, slot] : slots_) {
    if (!slot.disputed_since || now < *slot.disputed_since + kToTakeASide) continue;
    mismatch_ = mismatch_of(slot);
    return;
  }
}

comm::Mismatch GroupCalls::mismatch_of(const Slot& slot) const {
  const auto calls = present(slot);
  comm::CallVote vote(group_, calls.front()->sequence);
  for (const auto* const call : calls) vote.add(call->made(), {});
  return vote.mismatch();
}

void GroupCalls::add_send(OpenCall send) {
  auto& receives = receives_[static_cast<std::size_t>(send.operation.peer)];
  const auto recv = std::find_if(receives.begin(), receives.end(),
                                 [&](const OpenCall& each) { return fits(send.operation, send.rank, each.operation); });
  if (recv != receives.end() && meet(send, *recv, true)) {
    receives.erase(recv);
    return;
  }
  sends_[static_cast<std::size_t>(send.operation.peer)].push_back(std::move(send));
}

void GroupCalls::add_receive(OpenCall recv) {
  auto& sends = sends_[static_cast<std::size_t>(recv.rank)];
  const auto send = std::find_if(sends.begin(), sends.end(),
                                 [&](const OpenCall& each) { return fits(each.operation, each.rank, recv.operation); });
  if (send != sends.end() && meet(*send, recv, false)) {
    sends.erase(send);
    return;
  }
  receives_[static_cast<std::size_t>(recv.rank)].push_back(std::move(recv));
}

// False: they do not fit.
bool GroupCalls::meet(OpenCall& send, OpenCall& recv, bool send_came_last) {
  const bool by_gloo = recv.operation.outputs[0].is_cpu();  // else by NCCL, which needs equal sizes
  auto fields = comm::pair_differences(send.operation, recv.operation, by_gloo);
  if (!fields.empty()) {
    const auto met = (send_came_last ? recv : send).made(), last = (send_came_last ? send : recv).made();
    mismatch_ = comm::mismatch_of_pair({met, {}}, {last, {}}, std::move(fields), group_);
    send.disagrees = recv.disagrees = true;
    return false;
  }
  note_short(send, recv);
  tell_(group_.global_rank(send.rank), {Matched::point_to_point, key_, send.sequence, -1});
  tell_(group_.global_rank(recv.rank), {Matched::point_to_point, key_, recv.sequence, send.rank});
  return true;
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

GroupCalls::Open GroupCalls::open_collective(const Slot& slot, const OpenCall& call) const {
  Open open{{}, call.since, call.operation.timeout};
  const auto title = comm::title_of(call.operation, call.sequence, group_);
  open.call = {group_.global_rank(call.rank), group_.name, call.sequence, title,
               comm::disagreeing(title),      {},          false,         false,
               comm::Event::kNotRecorded - 1};
  if (slot.disputed_since) {
    for (const auto* const other : present(slot)) {
      if (!comm::agree(call.made(), other->made())) open.call.waits_for.push_back(group_.global_rank(other->rank));
    }
    return open;
  }
  open.call.description = comm::waiting_for_ranks(title, slot.arrived, slot.calls.size());
  for (std::size_t rank = 0; rank < slot.calls.size(); ++rank) {
    if (!slot.calls[rank]) open.call.waits_for.push_back(group_.global_rank(static_cast<int>(rank)));
  }
  return open;
}

std::string GroupCalls::hint(const OpenCall& call) const {
  const bool is_send = call.operation.type == c10d::OpType::SEND;
  const auto peer = is_send ? call.operation.peer : call.rank;
  std::vector<comm::Envelope> others;
  for (const auto& other : (is_send ? receives_ : sends_)[static_cast<std::size_t>(peer)])
    others.push_back({is_send ? other.operation.peer : other.rank, other.operation.tag});
  return comm::near_miss(call.operation, call.rank, others, group_);
}

GroupCalls::Open GroupCalls::open_message(const OpenCall& call) const {
  Open open{{}, call.since, call.operation.timeout, call.operation.peer >= 0};
  const bool is_send = call.operation.type == c10d::OpType::SEND;
  const auto title = comm::title_of(call.operation, call.sequence, group_);
  const auto near_miss = hint(call);
  const auto description =
      call.disagrees ? comm::disagreeing(title) : comm::waiting_for_message(title, is_send, near_miss);
  constexpr auto kNoEvent = comm::Event::kNotRecorded - 1;
  open.call = {
      group_.global_rank(call.rank), group_.name, call.sequence, title, description, {}, false, false, kNoEvent,
      is_send ? near_miss : "",      is_send,     kNoEvent};
  if (call.operation.peer >= 0) {
    open.call.waits_for = {group_.global_rank(call.operation.peer)};
  } else {
    open.call.waits_for = group_.ranks;
    open.call.waits_for.erase(open.call.waits_for.begin() + call.rank);
  }
  return open;
}

std::vector<GroupCalls::Open> GroupCalls::open() const {
  std::vector<Open> all;
  for (const auto& [sequence, slot] : slots_) {
    for (const auto* const call : present(slot)) all.push_back(open_collective(slot, *call));
  }
  for (const auto* const boxes : {&sends_, &receives_}) {
    for (const auto& box : *boxes) {
      for (const auto& call : box) all.push_back(open_message(call));
    }
  }
  return all;
}

}  // namespace rehearse::real
