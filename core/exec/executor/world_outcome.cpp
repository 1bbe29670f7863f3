// SPDX-License-Identifier: BSD-3-Clause
#include "world_outcome.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/exec/check.h>

#include "exec/call_site/failure_text.h"

namespace rehearse::exec {
namespace {

// Whether a rank caught the timeout of the hang, went on, and waits for something else by now. If a rank still unwinds
// from it, the hang led to the end.
bool has_left_hang(const RunOutcome& outcome) {
  std::set<std::tuple<int, std::uint32_t, std::string>> waits;
  for (const BlockedFiber& fiber : outcome.blocked) {
    if (fiber.unwinding) return false;
    waits.emplace(fiber.rank, fiber.fiber_of_rank, fiber.waits_on);
  }
  return std::any_of(outcome.hang.begin(), outcome.hang.end(), [&](const BlockedFiber& hung) {
    return !waits.contains({hung.rank, hung.fiber_of_rank, hung.waits_on});
  });
}

}  // namespace

WorldOutcome::WorldOutcome(const Clock& clock, int ranks) : clock_(clock) {
  outcome_.ranks.assign(static_cast<std::size_t>(ranks), RankEnd::aborted);
  outcome_.ended_at.assign(static_cast<std::size_t>(ranks), kTimeZero);
}

void WorldOutcome::end(Ending ending, std::string reason) noexcept {
  if (ended_) return;
  ended_ = true;
  outcome_.ending = ending;
  outcome_.stop_reason = std::move(reason);
  outcome_.end_time = clock_.now();
  // Progress clears a recorded hang at the next standstill. So a hang that is still recorded led to this end, even if
  // unwinding has done things since.
  if (hang_.empty()) return;
  outcome_.hang = std::move(hang_);
  outcome_.hang_began = hang_began_;
}

void WorldOutcome::end_by_error(std::string reason) noexcept {
  error_ = std::current_exception();
  REHEARSE_CHECK(error_ != nullptr, reason);
  end(Ending::stopped, std::move(reason));
}

BlockedFiber WorldOutcome::describe(const Fiber& fiber, const Observer* observer) const {
  BlockedFiber entry;
  entry.rank = fiber.rank;
  entry.fiber_of_rank = fiber.fiber_of_rank;
  entry.polls = fiber.polling && !fiber.in_kernel;
  auto& wait = static_cast<Wait&>(entry);
  if (observer != nullptr) wait = observer->wait();
  const auto look = looks_.find(fiber.id);
  const bool pauses = !entry.polls && wait.waits_for.empty() && !wait.any_rank;
  if (pauses && outcome_.ending == Ending::livelock && look != looks_.end()) {
    wait = look->second.wait;
    entry.where = look->second.where;
    entry.polls = true;
    return entry;
  }
  if (observer == nullptr || !observer->is_opaque() || explainer_ == nullptr) return entry;
  auto behind = explainer_->explain_wait(fiber.rank);
  if (behind.call.empty()) return entry;
  behind.waits_on += ", waiting in " + wait.waits_on;
  wait = std::move(behind);
  return entry;
}

void WorldOutcome::note_hang(const std::vector<Fiber*>& fibers, VirtualTime since) {
  if (!hang_.empty()) return;
  hang_began_ = since;
  for (const Fiber* const fiber : fibers) {
    if (fiber->state == Fiber::State::blocked) hang_.push_back(describe(*fiber, fiber->observer));
  }
}

void WorldOutcome::note_look(const Fiber& fiber, const Observer& observer) {
  looks_[fiber.id] = {observer.wait(), CallSite::capture()};
}

void WorldOutcome::note_failing_loop(int rank, const std::exception_ptr& error) {
  outcome_.failing_loop = {rank, error != nullptr ? failure_text(error) : ""};
}

void WorldOutcome::note_blocked(Fiber& fiber, const Observer* observer) {
  if (fiber.blocked_entry >= 0) return;
  fiber.blocked_entry = static_cast<int>(outcome_.blocked.size());
  outcome_.blocked.push_back(describe(fiber, observer));
  // A fiber whose pause has just ended polls as the others do.
  const bool polls = outcome_.ending == Ending::livelock && outcome_.blocked.back().polls;
  outcome_.blocked.back().was_blocked = polls || fiber.state == Fiber::State::blocked;
}

void WorldOutcome::note_where(Fiber& fiber, const Observer* observer) {
  if (outcome_.ending == Ending::all_returned) return;
  note_blocked(fiber, observer);
  const auto at = static_cast<std::size_t>(fiber.blocked_entry);
  REHEARSE_CHECK(at < outcome_.blocked.size(), fiber.rank, fiber.id, fiber.blocked_entry, outcome_.blocked.size());
  BlockedFiber& entry = outcome_.blocked[at];
  if (!entry.where.empty()) return;
  entry.where = CallSite::capture();
  entry.unwinding = unwinding_now();
}

void WorldOutcome::note_where_it_hung(Fiber& fiber, const Observer& observer) {
  if (ended_) return note_where(fiber, &observer);
  for (BlockedFiber& entry : hang_) {
    const bool is_its = entry.rank == fiber.rank && entry.fiber_of_rank == fiber.fiber_of_rank;
    if (!is_its || !entry.where.empty()) continue;
    entry.where = CallSite::capture();
    entry.unwinding = unwinding_now();
  }
}

RunOutcome WorldOutcome::take() {
  REHEARSE_CHECK(ended_ && !taken_, ended_, taken_);
  taken_ = true;
  if (error_ != nullptr) std::rethrow_exception(error_);
  if (outcome_.ending == Ending::deadlock && has_left_hang(outcome_)) outcome_.hang.clear();
  std::stable_sort(outcome_.blocked.begin(), outcome_.blocked.end(), [](const BlockedFiber& a, const BlockedFiber& b) {
    return std::tie(a.rank, a.fiber_of_rank) < std::tie(b.rank, b.fiber_of_rank);
  });
  return std::move(outcome_);
}

}  // namespace rehearse::exec
