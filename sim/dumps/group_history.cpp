// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/group_history.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/comm/title.h>

#include "comm/agree/pairs.h"
#include "comm/agree/wording.h"
#include "comm/call/fingerprint.h"
#include "dumps/read_dump.h"

namespace rehearse::sim {
namespace {

exec::CallSite no_place(int) { return {}; }

constexpr int kSizesOfAllToAllsSince = 4;  // minor version: earlier ones did not record the sizes

// Gloo also marks a call as retired if the call failed. If some ranks never came to a retired call, the call failed.
constexpr std::string_view kRetiresFailures = "gloo";

}  // namespace

GroupHistory::GroupHistory(const DumpedJob& job, const JobGroup& group)
    : job_(job),
      group_(group),
      identity_(group.identity),
      operations_(group.identity.ranks.size()),
      ranks_(group.identity.ranks.size()),
      calls_(group.identity),
      mailboxes_(group.identity.ranks.size()) {
  for (int rank = 0; rank < identity_.size(); ++rank) {
    const auto calls = group.calls.find(identity_.global_rank(rank));
    if (calls != group.calls.end()) read(rank, calls->second);
  }
}

const Dump* GroupHistory::dump_at(int rank) const { return job_.dump_of(identity_.global_rank(rank)); }

void GroupHistory::read(int rank, const std::vector<const DumpedCall*>& calls) {
  auto& own = ranks_[static_cast<std::size_t>(rank)];
  for (const auto* const call : calls) {
    if (call->is_unaddressed()) continue;
    if (call->is_message()) {
      if (std::max(call->source, call->target) >= identity_.size()) continue;
      own.messages.push_back({rank, call, &operations_.message(*call), call->completed});
    } else if (call->ends_coalescing()) {
      end_coalescing(*call, call == calls.front(), own);
    } else {
      own.collectives[call->collective_seq].entries.push_back(call);
    }
  }
  for (auto& [sequence, collective] : own.collectives) {
    collective.compared = &operations_.collective(collective.entries);
    finish(*dump_at(rank), collective);
  }
}

// Only the entry for the end of coalesced messages says whether they are complete. Its number says which messages it
// ends. If it ends messages, it does not count as a collective.
void GroupHistory::end_coalescing(const DumpedCall& end, bool is_first, OfRank& own) {
  const auto known = own.collectives.find(end.collective_seq);
  const bool ends_messages =
      !own.messages.empty() && own.messages.back().call->p2p_seq == end.p2p_seq &&
      (known == own.collectives.end() || known->second.entries.back()->record_id < own.messages.back().call->record_id);
  if (ends_messages) {
    for (auto& message : own.messages) {
      if (message.call->p2p_seq == end.p2p_seq) message.completed = end.completed;
    }
  } else if (!is_first || end.record_id == 0) {
    own.collectives[end.collective_seq].entries.push_back(&end);
  }
}

void GroupHistory::finish(const Dump& dump, Collective& collective) {
  const auto& entries = collective.entries;
  const bool has_end = entries.back()->ends_coalescing();
  collective.completed = has_end || entries.size() == 1 ? entries.back()->completed : false;
  collective.cut = !dump.whole && entries.front()->record_id == dump.calls.front().record_id;
}

bool GroupHistory::is_over(const Collective& collective, bool ranks_are_missing) {
  return collective.completed && !(ranks_are_missing && collective.entries.front()->backend == kRetiresFailures);
}

// A rank numbers its collectives without gaps. So if its dump has one of them, the rank also made all collectives with
// lower numbers.
GroupHistory::Made GroupHistory::made(int rank, std::uint64_t sequence) const {
  const auto* const dump = dump_at(rank);
  if (dump == nullptr) return Made::unknown;
  const auto& collectives = ranks_[static_cast<std::size_t>(rank)].collectives;
  if (const auto found = collectives.find(sequence); found != collectives.end())
    return found->second.cut ? Made::unseen : Made::yes;
  if (collectives.empty()) return dump->whole ? Made::no : Made::unknown;
  if (sequence < collectives.rbegin()->first) return Made::unseen;
  return dump->filtered ? made_by_status(*dump, *collectives.rbegin()->second.entries.back(), sequence) : Made::no;
}

// If a dump leaves out calls, its status still holds the number of the last call. If the group has messages, that
// number may belong to a message.
GroupHistory::Made GroupHistory::made_by_status(const Dump& dump, const DumpedCall& last, std::uint64_t sequence) {
  const auto enqueued = dump.enqueued.find(last.group_id);
  if (enqueued == dump.enqueued.end() || last.p2p_seq > 0) return Made::unknown;
  return enqueued->second >= 0 && sequence <= static_cast<std::uint64_t>(enqueued->second) ? Made::unseen : Made::no;
}

GroupDiagnosis GroupHistory::diagnose() {
  GroupDiagnosis diagnosis;
  std::set<std::uint64_t> sequences;
  for (const auto& own : ranks_) {
    for (const auto& [sequence, collective] : own.collectives) sequences.insert(sequence);
  }
  for (const auto sequence : sequences) {
    if (!diagnose_collective(sequence, diagnosis)) break;
  }
  diagnose_messages(diagnosis);
  std::ranges::stable_sort(diagnosis.open, [](const OpenCall& a, const OpenCall& b) {
    return std::pair(a.rank, a.call->record_id) < std::pair(b.rank, b.call->record_id);
  });
  return diagnosis;
}

// False: the calls do not fit, so the later ones tell nothing.
bool GroupHistory::diagnose_collective(std::uint64_t sequence, GroupDiagnosis& diagnosis) {
  calls_.open(sequence);
  std::vector<Made> made(ranks_.size());
  for (int rank = 0; rank < identity_.size(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    made[index] = this->made(rank, sequence);
    if (made[index] != Made::yes) continue;
    const auto& call = ranks_[index].collectives.at(sequence);
    calls_.add({rank, sequence, &call.operation(), call.compared->fingerprint}, no_place);
  }
  diagnose_open(sequence, made, diagnosis);
  if (calls_.fit() && !diagnose_imbalance(sequence, diagnosis)) return true;
  if (!calls_.fit()) diagnosis.mismatch = calls_.mismatch();
  note_sides(sequence, diagnosis);
  return false;
}

void GroupHistory::note_sides(std::uint64_t sequence, GroupDiagnosis& diagnosis) const {
  for (int rank = 0; rank < identity_.size(); ++rank) {
    if (!calls_.has(rank)) continue;
    const auto& call = ranks_[static_cast<std::size_t>(rank)].collectives.at(sequence);
    diagnosis.sides[identity_.global_rank(rank)] = titled(*call.entries.front(), call.operation());
  }
}

// A dump does not hold the splits. Whatever they are, all ranks together must send as much as they expect.
bool GroupHistory::diagnose_imbalance(std::uint64_t sequence, GroupDiagnosis& diagnosis) const {
  if (!calls_.full() || minor_version(job_.dumps().front().version) < kSizesOfAllToAllsSince) return false;
  std::uint64_t sent = 0, expected = 0;
  for (const auto& own : ranks_) {
    const auto& call = own.collectives.at(sequence).operation();
    if (call.type != c10d::OpType::ALLTOALL_BASE || call.outputs.empty()) return false;
    sent += static_cast<std::uint64_t>(call.inputs.front().numel());
    expected += static_cast<std::uint64_t>(call.outputs.front().numel());
  }
  if (sent == expected) return false;
  const auto& call = ranks_.front().collectives.at(sequence);
  diagnosis.imbalance = {titled(*call.entries.front(), call.operation()).title, sent, expected};
  return true;
}

// Adds each rank's first collective that is not complete. The collective waits for the ranks that certainly did not
// make the call or, if there are none, for the ranks that may or may not have made the call.
void GroupHistory::diagnose_open(std::uint64_t sequence, const std::vector<Made>& made, GroupDiagnosis& diagnosis) {
  std::vector<int> missing, unknown;
  std::size_t arrived = 0;
  for (int rank = 0; rank < identity_.size(); ++rank) {
    const auto each = made[static_cast<std::size_t>(rank)];
    if (each == Made::no) missing.push_back(identity_.global_rank(rank));
    if (each == Made::unknown) unknown.push_back(identity_.global_rank(rank));
    arrived += each == Made::yes || each == Made::unseen ? 1 : 0;
  }
  for (int rank = 0; rank < identity_.size(); ++rank) {
    const int global = identity_.global_rank(rank);
    auto& collectives = ranks_[static_cast<std::size_t>(rank)].collectives;
    const auto call = collectives.find(sequence);
    if (call == collectives.end()) continue;
    call->second.completed = is_over(call->second, !missing.empty());
    if (call->second.completed) continue;
    const auto of_rank = [global](const OpenCall& open) { return open.rank == global; };
    if (std::ranges::any_of(diagnosis.open, of_rank)) continue;
    OpenCall open;
    open.rank = global;
    open.title = comm::title_of(call->second.operation(), sequence, identity_);
    const bool disputed = !calls_.fit() && calls_.has(rank);
    open.description =
        disputed ? calls_.describe(open.title) : comm::waiting_for_ranks(open.title, arrived, ranks_.size());
    open.unknown = !disputed && missing.empty() && !unknown.empty();
    open.waits_for = disputed ? calls_.waits_for(rank) : open.unknown ? unknown : missing;
    open.seen = arrived == calls_.arrived();
    open.call = call->second.entries.front();
    diagnosis.open.push_back(std::move(open));
  }
}

// Two ranks' messages pair up in order. If the recorder of one of the two ranks has dropped calls, nobody knows the
// places of complete messages in that order, so this function leaves out the complete messages.
void GroupHistory::diagnose_messages(GroupDiagnosis& diagnosis) {
  for (const auto type : {c10d::OpType::SEND, c10d::OpType::RECV, c10d::OpType::RECVANYSOURCE}) {
    for (auto& own : ranks_) {
      for (auto& message : own.messages) {
        if (message.operation().type != type || (message.completed && !is_whole(message))) continue;
        const int source = type == c10d::OpType::RECVANYSOURCE ? likely_source(message) : message.call->source;
        if (type == c10d::OpType::SEND) {
          mailboxes_.keep_send(message.call->target, {source, 0}, &message);
        } else if (auto send = mailboxes_.take_send(message.rank, source, 0)) {
          meet(*send->call, message, diagnosis);
        } else {
          mailboxes_.keep_receive(message.rank, {source, 0}, &message);
        }
      }
    }
  }
  diagnose_unmatched(diagnosis);
}

// Whether the dumps hold all calls of the message's rank and of the ranks that may be its peer.
bool GroupHistory::is_whole(const Message& message) const {
  for (int rank = 0; rank < identity_.size(); ++rank) {
    const int peer = message.operation().peer;
    if (peer >= 0 && rank != peer && rank != message.rank) continue;
    const auto* const dump = dump_at(rank);
    if (dump == nullptr || !dump->whole) return false;
  }
  return true;
}

// Of which rank a receive from any source took the message: of the first one whose next message fits, otherwise of the
// first one that has sent one. -1: nobody has.
int GroupHistory::likely_source(const Message& recv) const {
  int first = -1, fitting = -1;
  std::set<int> seen;
  mailboxes_.visit([&](const auto& letter, bool is_send) {
    const auto& send = *letter.call;
    if (!is_send || send.operation().peer != recv.rank || !seen.insert(letter.source).second) return;
    if (first < 0) first = letter.source;
    const bool fits = send.completed == recv.completed && pair_fields(send, recv).empty();
    if (fitting < 0 && fits) fitting = letter.source;
  });
  return fitting >= 0 ? fitting : first;
}

std::vector<comm::Mismatch::Field> GroupHistory::pair_fields(const Message& send, const Message& recv) {
  return comm::pair_differences(send.operation(), recv.operation(), recv.operation().outputs[0].is_cpu());
}

// A pair whose two calls differ never ends. A pair whose calls fit ends unless the transfer hangs.
void GroupHistory::meet(const Message& send, const Message& recv, GroupDiagnosis& diagnosis) {
  auto fields = pair_fields(send, recv);
  const bool differ = !fields.empty();
  for (const auto* const message : {&send, &recv}) {
    if (message->completed) continue;
    auto& open = add_open(*message, diagnosis);
    open.description = differ ? comm::disagreeing(open.title) : comm::waiting_for_ranks(open.title, 2, 2);
    if (differ) open.waits_for = {identity_.global_rank(message == &send ? recv.rank : send.rank)};
  }
  if (!differ || diagnosis.mismatch) return;
  const comm::MadeCall sent{send.rank, send.call->p2p_seq, &send.operation(), 0};
  const comm::MadeCall received{recv.rank, recv.call->p2p_seq, &recv.operation(), 0};
  diagnosis.mismatch = comm::mismatch_of_pair({sent, {}}, {received, {}}, std::move(fields), identity_);
  diagnosis.sides = {{identity_.global_rank(send.rank), titled(*send.call, send.operation())},
                     {identity_.global_rank(recv.rank), titled(*recv.call, recv.operation())}};
}

OpenCall& GroupHistory::add_open(const Message& message, GroupDiagnosis& diagnosis) const {
  auto [call, title] = titled(*message.call, message.operation());
  auto& open = diagnosis.open.emplace_back();
  open.rank = identity_.global_rank(message.rank);
  open.title = std::move(title);
  open.call = call;
  return open;
}

void GroupHistory::diagnose_unmatched(GroupDiagnosis& diagnosis) {
  mailboxes_.visit([&](const auto& letter, bool is_send) {
    const auto& message = *letter.call;
    const int peer = message.operation().peer;
    const bool unknown = peer >= 0 && dump_at(peer) == nullptr;
    if (message.completed) {
      // A complete receive had a send, which the peer's recorder has dropped. So report only complete sends.
      if (is_send && !unknown)
        diagnosis.never_received.push_back(fmt::format(
            "{} of rank {}", titled(*message.call, message.operation()).title, identity_.global_rank(message.rank)));
      return;
    }
    auto& open = add_open(message, diagnosis);
    const auto near_miss = mailboxes_.near_miss(message.operation(), message.rank, identity_);
    open.description = comm::waiting_for_message(open.title, is_send, near_miss);
    for (int rank = 0; rank < identity_.size(); ++rank) {
      if (peer >= 0 ? rank == peer : rank != message.rank) open.waits_for.push_back(identity_.global_rank(rank));
    }
    open.unknown = unknown;
  });
}

TitledCall GroupHistory::titled(const DumpedCall& call, const comm::Operation& operation) const {
  const auto sequence = call.is_message() ? call.p2p_seq : call.collective_seq;
  return {&call, comm::title_of(operation, sequence, identity_)};
}

template <class Counts>
std::optional<TitledCall> GroupHistory::last_that(int rank, const Counts& counts) const {
  const auto found = std::ranges::find(identity_.ranks, rank);
  if (found == identity_.ranks.end()) return std::nullopt;
  const auto& own = ranks_[static_cast<std::size_t>(found - identity_.ranks.begin())];
  std::optional<TitledCall> last;
  const auto collective = std::find_if(own.collectives.rbegin(), own.collectives.rend(),
                                       [&](const auto& each) { return counts(each.second); });
  if (collective != own.collectives.rend())
    last = titled(*collective->second.entries.front(), collective->second.operation());
  const auto message = std::find_if(own.messages.rbegin(), own.messages.rend(), counts);
  if (message != own.messages.rend() && (!last || message->call->record_id > last->call->record_id))
    last = titled(*message->call, message->operation());
  return last;
}

std::optional<TitledCall> GroupHistory::last_completed(int rank) const {
  return last_that(rank, [](const auto& call) { return call.completed; });
}

std::optional<TitledCall> GroupHistory::last(int rank) const {
  return last_that(rank, [](const auto&) { return true; });
}

}  // namespace rehearse::sim
