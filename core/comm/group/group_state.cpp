// SPDX-License-Identifier: BSD-3-Clause
#include "group_state.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse/exec/this_rank.h>

#include "comm/call/fingerprint.h"
#include "comm/call/label.h"

namespace rehearse::comm {
namespace {

// " to rank 3 with tag 5" for sends and receives, nothing for collectives.
std::string peer_text(const RankWork& work) {
  const auto& call = work.operation;
  if (!is_point_to_point(call.type)) return {};
  std::string text;
  if (call.peer >= 0) {
    const auto* const direction = call.type == c10d::OpType::SEND ? "to" : "from";
    text = fmt::format(" {} rank {}", direction, work.group().global_rank(call.peer));
  }
  if (call.tag != 0) text += fmt::format(" with tag {}", call.tag);
  return text;
}

}  // namespace

GroupState::GroupState(Communicators& world, std::uint32_t id, std::string name, std::vector<int> ranks)
    : world_(&world),
      id_(id),
      name_(std::move(name)),
      ranks_(std::move(ranks)),
      calls_(ranks_.size()),
      barriers_(ranks_.size()),
      collectives_(*this, ranks_.size()),
      point_to_point_(*this, ranks_.size()) {}

GroupState::~GroupState() = default;

Communicators& GroupState::world() const {
  if (world_ == nullptr) {
    throw CommError(fmt::format("the world of group \"{}\" is over", name_), name_, 0, {});
  }
  return *world_;
}

void GroupState::check_caller(int rank) const {
  world();
  const int owner = global_rank(rank);
  const int caller = exec::this_rank::rank();
  if (caller != owner) {
    throw CommError(fmt::format("rank {} used the process group \"{}\" of rank {}: each rank must use its own", caller,
                                name_, owner),
                    name_, 0, {caller});
  }
}

void GroupState::check(const RankWork& work) const {
  check_caller(work.rank());
  if (!members_.empty()) {
    const auto member = members_.find(work.rank());
    if (member != members_.end()) member->second.check_open();
  }
  auto& world = this->world();
  if (!world.executor().ending()) world.fabric().validate(work.operation, size());
}

void GroupState::submit(c10::intrusive_ptr<RankWork> work) {
  check(*work);
  Communicators& world = this->world();
  world.note_work(global_rank(work->rank()), *work);
  if (world.executor().ending()) return;
  auto& call = work->operation;
  const int owner = global_rank(work->rank());
  const auto& label = world.label(owner);
  call.label = label.text;
  call.payload = world.payload(owner, call);
  work->fingerprint = agreement_hash(call, label.hash);
  work->signature = signature_hash(call, work->fingerprint);
  if (is_point_to_point(call.type)) {
    point_to_point_.join(std::move(work));
  } else {
    collectives_.join(std::move(work));
  }
}

Event& GroupState::record(RankWork& work, std::uint64_t sequence, std::uint32_t signature) {
  const auto& call = work.operation;
  Event event;
  event.time_created = world_->now();
  event.seq_id = static_cast<std::uint32_t>(sequence);
  event.op_id = ++calls_[static_cast<std::size_t>(work.rank())];
  event.pg_id = id_;
  event.signature = signature;
  event.rank = global_rank(work.rank());
  if (call.peer >= 0) event.peer = global_rank(call.peer);
  event.tag = call.tag;
  auto& log = world_->event_log();
  Event& stored = log.record(event, work.signature);
  if (world_->options().call_sites) log.set_call_site(stored, exec::CallSite::capture());
  return stored;
}

exec::CallSite GroupState::call_site(const RankWork& work) const {
  const auto* const event = work.event();
  return event != nullptr ? world_->event_log().call_site(*event) : exec::CallSite{};
}

Mismatch::Side GroupState::side_of(const RankWork& work, exec::CallSite where) const {
  Mismatch::Side side;
  side.rank = global_rank(work.rank());
  side.fingerprint = fingerprint_text(work.operation) + peer_text(work);
  side.where = std::move(where);
  side.alike = {side.rank};
  return side;
}

Works GroupState::in_flight(int rank) const {
  Works works;
  collectives_.list_in_flight(rank, works);
  const auto by_sequence = [](const auto& a, const auto& b) { return a->getSequencenumber() < b->getSequencenumber(); };
  std::sort(works.begin(), works.end(), by_sequence);
  Works sends_and_receives;
  point_to_point_.list_in_flight(rank, sends_and_receives);
  std::sort(sends_and_receives.begin(), sends_and_receives.end(), by_sequence);
  works.insert(works.end(), sends_and_receives.begin(), sends_and_receives.end());
  return works;
}

void GroupState::list_pending(std::vector<PendingOperation>& pending, int only_of) const {
  collectives_.list_pending(pending, only_of);
  point_to_point_.list_pending(pending, only_of);
}

void GroupState::close() noexcept {
  if (closed()) return;
  collectives_.close();
  point_to_point_.close();
  world_ = nullptr;
}

std::string title_of(const RankWork& work) {
  const auto label = label_of(work.operation);
  return fmt::format("{} #{}{}{} on group \"{}\"", name_of(work.operation), work.getSequencenumber(), peer_text(work),
                     label.empty() ? "" : fmt::format(" of \"{}\"", label), work.group().name());
}

}  // namespace rehearse::comm
