// SPDX-License-Identifier: BSD-3-Clause
#include "call_watch.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <c10/util/ScopeExit.h>
#include <rehearse_internal/exec/check.h>

namespace rehearse::sim {
namespace {

using Which = BufferIndex::Which;

// If a rank has dropped the Work of a call, nobody asks about that call any more. So keep only the latest of these
// calls, this many for each rank.
constexpr std::size_t kDroppedMost = 64;

// True if every access that conflicts with `earlier` also conflicts with `later`.
bool covers(const WatchedBuffer& later, const WatchedBuffer& earlier) noexcept {
  const auto& whole = later.footprint;
  const auto& part = earlier.footprint;
  return later.writes() && whole.runs().size() == 1 && !std::less<>{}(part.bounds().begin, whole.bounds().begin) &&
         !std::less<>{}(whole.bounds().end, part.bounds().end);
}

}  // namespace

CallWatch::CallWatch(exec::RankExecutor& executor, bool call_sites)
    : executor_(executor), call_sites_(call_sites), ranks_(static_cast<std::size_t>(executor.options().ranks)) {}

CallWatch::~CallWatch() {
  for (auto& rank : ranks_) {
    rank.groups.clear();
    rank.dropped.clear();
    rank.calls.clear_and_dispose([this](WatchedCall* call) { destroy(*call); });
  }
}

void CallWatch::destroy(WatchedCall& call) noexcept {
  std::pmr::polymorphic_allocator<>(&memory_).delete_object(&call);
}

// Null: the call is not watched, or not any more.
WatchedCall* CallWatch::find(const comm::Operation& call) {
  auto* const watched = static_cast<WatchedCall*>(call.trace);
  REHEARSE_CHECK(watched == nullptr || watched->call == &call, call.type, watched->rank, watched->number);
  return watched;
}

const comm::GroupIdentity& CallWatch::kept(const comm::GroupIdentity& group) {
  if (group.id >= groups_.size()) groups_.resize(group.id + 1);
  auto& own = groups_[group.id];
  if (!own) own = group;
  return *own;
}

auto CallWatch::on_call(comm::Operation& call, const comm::GroupIdentity& group, int rank, std::uint64_t sequence)
    -> Answer {
  if (executor_.ending()) return Answer::pass;
  std::pmr::polymorphic_allocator<> memory(&memory_);
  auto& watched = *memory.new_object<WatchedCall>(call, kept(group), rank, sequence, memory_);
  // A checker may end the rank by an exception.
  auto no_call = c10::make_scope_exit([&] { destroy(watched); });
  watched.number = ++calls_made_;
  if (call_sites_) watched.where = exec::CallSite::capture();
  const auto shared = shared_by(watched);
  for (auto* const checker : checkers_) checker->begin(watched, shared);
  no_call.release();
  enter(watched, shared);
  return Answer::pass;
}

std::vector<SharedBytes> CallWatch::shared_by(WatchedCall& call) {
  std::vector<SharedBytes> shared;
  for (auto& buffer : call.buffers) {
    for (auto* const earlier : buffers_.find(buffer.footprint, buffer.writes() ? Which::all : Which::written)) {
      if (earlier->is_there()) {
        shared.push_back({&buffer, earlier});
      } else {
        buffers_.remove(*earlier);
      }
    }
  }
  return shared;
}

void CallWatch::enter(WatchedCall& call, const std::vector<SharedBytes>& shared) {
  for (const auto& [buffer, earlier] : shared) {
    const bool is_of_rank = earlier->call->rank == call.rank;
    if (buffer->writes()) earlier->others_write = true;
    if (!is_of_rank && earlier->writes()) buffer->others_write = true;
    // The new buffer may replace the earlier one in the index, because a rank that learns of the end of `call` learns
    // of the earlier call's end, too. Otherwise all calls of a loop on one tensor would pile up in the index.
    if (is_of_rank && earlier->call->ends_before(call) && covers(*buffer, *earlier)) buffers_.remove(*earlier);
  }
  REHEARSE_CHECK(call.call->trace == nullptr, call.rank, call.group, call.number);
  for (auto& buffer : call.buffers) buffers_.add(buffer);
  of(call.rank).calls.push_back(call);
  call.call->trace = &call;
}

void CallWatch::forget(WatchedCall& call) noexcept {
  for (auto* const checker : checkers_) checker->forget(call);
  for (auto& buffer : call.buffers) buffers_.remove(buffer);
  if (call.call != nullptr) call.call->trace = nullptr;
  auto& rank = of(call.rank);
  if (call.AmongEnded::is_linked()) {
    auto& ended = rank.groups[call.group].of(call);
    ended.erase(ended.iterator_to(call));
  }
  if (call.AmongDropped::is_linked()) rank.dropped.erase(rank.dropped.iterator_to(call));
  rank.calls.erase(rank.calls.iterator_to(call));
  destroy(call);
}

void CallWatch::note_dropped(WatchedCall& call) noexcept {
  auto& dropped = of(call.rank).dropped;
  dropped.insert(dropped.end(), call);
  if (dropped.size() > kDroppedMost) forget(*dropped.begin());
}

void CallWatch::on_complete(const comm::Operation& call, bool succeeded) noexcept {
  auto* const watched = find(call);
  if (watched == nullptr) return;
  REHEARSE_CHECK(watched->under_way, watched->rank, watched->group, watched->number);
  watched->under_way = false;
  if (!succeeded || !watched->async) return forget(*watched);
  for (auto* const checker : checkers_) checker->arrive(*watched);
  auto& ended = of(watched->rank).groups[watched->group].of(*watched);
  ended.insert(ended.end(), *watched);
}

// A back end carries out the collectives of a group in order. Thus a rank that knows the end of one also knows the end
// of all earlier ones. Messages have no such order. A barrier counts for them, too (see GroupState::known_until()).
void CallWatch::on_known(const comm::Operation& call) noexcept {
  auto* const watched = find(call);
  if (watched == nullptr) return;
  const auto number = watched->number;
  const bool is_message = watched->is_message, is_barrier = watched->is_barrier;
  auto& group = of(watched->rank).groups[watched->group];
  if (is_message && !watched->under_way) learn(*watched);
  if (!is_message) learn_until(number, group.collectives);
  if (is_barrier) learn_until(number, group.messages);
}

void CallWatch::learn(WatchedCall& call) noexcept {
  for (auto* const checker : checkers_) checker->learn(call);
  forget(call);
}

void CallWatch::learn_until(std::uint64_t number, Ended& calls) noexcept {
  while (!calls.empty() && calls.begin()->number <= number) learn(*calls.begin());
}

void CallWatch::on_released(const comm::Operation& call) noexcept {
  auto* const watched = find(call);
  if (watched == nullptr) return;
  watched->call->trace = nullptr;
  watched->call = nullptr;
  if (!watched->under_way) note_dropped(*watched);
}

bool CallWatch::may_move(const comm::Transfer& transfer) {
  if (executor_.ending()) return true;
  for (const auto* const call : transfer.calls) {
    const auto* const watched = find(*call);
    if (watched == nullptr) continue;
    for (auto* const checker : checkers_) {
      if (!checker->move(*watched)) return false;
    }
  }
  return true;
}

bool CallWatch::is_unchanged(const comm::Operation& call) {
  const auto* const watched = find(call);
  return watched == nullptr ||
         std::ranges::all_of(checkers_, [&](auto* checker) { return checker->is_unchanged(*watched); });
}

}  // namespace rehearse::sim
