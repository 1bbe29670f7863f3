// SPDX-License-Identifier: BSD-3-Clause
#include "call_watch.h"

#include <algorithm>
#include <utility>

namespace rehearse::sim {
namespace {

// Of a rank that never asks how its calls have ended, the latest are kept.
constexpr std::size_t kUnaskedMost = 64;

// Does a rank that knows of the end of `later` know of that of `earlier`, a call before it on the same group? A back
// end carries out the collectives of a group in their order. Messages go their own ways; a barrier comes behind them,
// too.
bool tells_of(const WatchedCall& later, const WatchedCall& earlier) {
  return later.is_barrier || (!later.is_message && !earlier.is_message);
}

}  // namespace

CallWatch::CallWatch(exec::RankExecutor& executor, comm::CallGate* next, bool call_sites)
    : executor_(executor),
      next_(next),
      call_sites_(call_sites),
      calls_(static_cast<std::size_t>(executor.options().ranks)) {}

CallWatch::~CallWatch() = default;

WatchedCall* CallWatch::find(const comm::Operation& call) const {
  const auto found = by_call_.find(&call);
  return found != by_call_.end() ? found->second : nullptr;
}

template <class Which>
void CallWatch::forget(int rank, const Which& which) noexcept {
  std::erase_if(calls_[static_cast<std::size_t>(rank)], [&](const auto& call) {
    if (!which(*call)) return false;
    for (auto* const checker : checkers_) checker->forget(*call);
    if (call->call != nullptr) by_call_.erase(call->call);
    return true;
  });
}

auto CallWatch::admit(const comm::Operation& call, const comm::GroupIdentity& group, int rank, std::uint64_t sequence)
    -> Answer {
  if (next_ != nullptr && next_->admit(call, group, rank, sequence) == Answer::skip) return Answer::skip;
  if (executor_.ending()) return Answer::pass;
  auto watched = std::make_unique<WatchedCall>(call, group, rank, sequence);
  if (call_sites_) watched->where = exec::CallSite::capture();
  auto& calls = calls_[static_cast<std::size_t>(rank)];
  for (auto* const checker : checkers_) checker->begin(*watched, calls);
  by_call_.insert_or_assign(&call, watched.get());
  calls.push_back(std::move(watched));
  return Answer::pass;
}

void CallWatch::ended(const comm::Operation& call, bool succeeded) noexcept {
  if (next_ != nullptr) next_->ended(call, succeeded);
  auto* const watched = find(call);
  if (watched == nullptr) return;
  watched->under_way = false;
  if (!succeeded || !watched->async) return forget(watched->rank, [&](const auto& each) { return &each == watched; });
  auto& calls = calls_[static_cast<std::size_t>(watched->rank)];
  if (calls.size() <= kUnaskedMost || calls.front()->under_way) return;
  const auto* const oldest = calls.front().get();
  forget(watched->rank, [&](const auto& each) { return &each == oldest; });
}

void CallWatch::known(const comm::Operation& call) noexcept {
  if (next_ != nullptr) next_->known(call);
  const auto* const watched = find(call);
  if (watched == nullptr) return;
  bool before = true;
  forget(watched->rank, [&, group = watched->group](const auto& each) {
    const bool is_it = &each == watched;
    const bool is_told = is_it || (before && each.group == group && tells_of(*watched, each));
    before = before && !is_it;
    return is_told && !each.under_way;
  });
}

void CallWatch::gone(const comm::Operation& call) noexcept {
  if (next_ != nullptr) next_->gone(call);
  auto* const watched = find(call);
  if (watched == nullptr) return;
  by_call_.erase(&call);
  watched->call = nullptr;
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

bool CallWatch::stands(const comm::Operation& call) {
  const auto* const watched = find(call);
  return watched == nullptr ||
         std::all_of(checkers_.begin(), checkers_.end(), [&](auto* checker) { return checker->stands(*watched); });
}

}  // namespace rehearse::sim
