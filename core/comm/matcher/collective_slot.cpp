// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/this_rank.h>

#include "collective_matcher.h"
#include "comm/agree/wording.h"
#include "comm/call/fingerprint.h"
#include "comm/work/pending_work.h"
#include "comm/work/work_observer.h"

namespace rehearse::comm {

CollectiveSlot::CollectiveSlot(const MatcherContext& context, CollectiveMatcher& matcher)
    : context_(context),
      group_(context.group),
      services_(context.services),
      matcher_(matcher),
      works_(group_.ranks.size()),
      calls_(group_),
      given_(works_.size()) {}

void CollectiveSlot::open(std::uint64_t sequence) noexcept {
  REHEARSE_CHECK(state_ == State::free && !armed(), sequence_, sequence, state_);
  state_ = State::open;
  sequence_ = sequence;
  calls_.open(sequence);
}

void CollectiveSlot::add(c10::intrusive_ptr<RankWork> work) {
  const auto rank = static_cast<std::size_t>(work->rank());
  REHEARSE_CHECK(state_ == State::open && works_[rank] == nullptr, sequence_, rank, state_);
  if (calls_.arrived() == 0 || signature_hash_ != work->signature) {
    signature_hash_ = work->signature;
    signature_ = context_.recorder.signature_of(work->operation, signature_hash_);
  }
  work->enter(this, sequence_,
              &context_.recorder.record(work->operation, work->rank(), sequence_, signature_, work->signature),
              services_.timers().passed_by_choice());
  if (work->deadline() != VirtualTime::max()) watch(work->deadline());
  const auto place_of = [&](int caller) {
    if (caller == work->rank()) return exec::CallSite::capture();
    return context_.recorder.call_site(works_[static_cast<std::size_t>(caller)]->record().event());
  };
  if (!calls_.add(work->made(), place_of)) [[unlikely]]
    join_mismatch(std::move(work));
  if (failure_.any()) [[unlikely]]
    fail(*work);
  works_[rank] = std::move(work);
}

void CollectiveSlot::join_mismatch(c10::intrusive_ptr<RankWork> work) {
  const bool opens = pending_mismatch_ == nullptr;
  if (opens) {
    pending_mismatch_ = std::make_unique<PendingCallMismatch>(services_, calls_);
    for (const auto& other : works_) {
      if (other != nullptr) pending_mismatch_->keep(other);
    }
  }
  const RankWork& own = *work;
  pending_mismatch_->keep(work);
  works_[static_cast<std::size_t>(own.rank())] = std::move(work);
  pending_mismatch_->note_arrival();
  const WorkObserver observer(own);
  if (opens && services_.mismatches.begin_mismatch()) pending_mismatch_->settle(observer);
  exec::this_rank::wait_for_the_end(observer);
}

void CollectiveSlot::launch() {
  REHEARSE_CHECK(state_ == State::open && full(), sequence_, calls_.arrived(), works_.size(), state_);
  if (failure_.any()) [[unlikely]]
    return end_in_failure();
  state_ = State::waiting;
  if (is_monitored_barrier(first().operation) || matcher_.enter(*this)) start();
}

// Gloo's barrier first waits for its rank's earlier calls, and NCCL's comes after them on the stream.
bool CollectiveSlot::waits_for_prior_work() const noexcept {
  const auto& call = first().operation;
  return call.type == c10d::OpType::BARRIER && !is_monitored_barrier(call);
}

void CollectiveSlot::start() {
  REHEARSE_CHECK(state_ == State::waiting && full(), sequence_, calls_.arrived(), state_);
  state_ = State::launched;
  const auto now = services_.now();
  for (std::size_t rank = 0; rank < works_.size(); ++rank) {
    works_[rank]->start(now);
    given_[rank] = &works_[rank]->operation;
  }
  transfer_ = {first().operation.type, sequence_, &group_, given_};
  services_.fabric.launch(transfer_, *this);
}

// The end of an earlier collective calls this, not a rank's call of this barrier. So if the start fails, only the world
// can receive the error.
void CollectiveSlot::begin_in_turn() noexcept {
  REHEARSE_CHECK(state_ == State::waiting, sequence_, state_);
  try {
    start();
  } catch (const std::exception& error) {
    services_.executor.stop(fmt::format("{} could not start: {}", title_of(first()), error.what()));
  }
}

void CollectiveSlot::on_launched() noexcept {
  REHEARSE_CHECK(state_ == State::launched, sequence_, state_);
  if (first().operation.end == nullptr) return;
  services_.executor.note_progress();
  for (const auto& work : works_) work->launch();
}

void CollectiveSlot::on_done() noexcept {
  REHEARSE_CHECK(state_ == State::launched, sequence_, state_);
  services_.executor.note_progress();
  state_ = State::carried_out;
  if (is_monitored_barrier(first().operation)) return end_in_turn();
  matcher_.advance();
}

void CollectiveSlot::end_in_turn() noexcept {
  REHEARSE_CHECK(state_ == State::carried_out, sequence_, state_);
  const auto now = services_.now();
  context_.recorder.note_completion(sequence_, now);
  // The works and fibers of a thousand ranks do not fit into the near caches. Prefetching overlaps their cache misses.
  constexpr std::size_t kAhead = 4;
  const std::size_t size = works_.size();
  for (std::size_t rank = 0; rank < size; ++rank) {
    if (rank + 2 * kAhead < size) works_[rank + 2 * kAhead]->prefetch();
    if (rank + kAhead < size) works_[rank + kAhead]->prefetch_waiter();
    works_[rank]->complete(now);
  }
  give_back();
}

void CollectiveSlot::on_failed(std::exception_ptr why) noexcept {
  REHEARSE_CHECK(state_ == State::launched, sequence_, state_);
  services_.executor.note_progress();
  for (const auto& work : works_) {
    work->fail(why);
    matcher_.fail_barriers_after(*work, sequence_);
  }
  give_back();
  matcher_.leave(*this);
}

void CollectiveSlot::give_back() noexcept {
  REHEARSE_CHECK(state_ != State::free, sequence_);
  services_.timers().cancel(*this);
  for (auto& work : works_) work.reset();
  failure_.clear();
  state_ = State::free;
  matcher_.give_back(*this);
}

void CollectiveSlot::withdraw(RankWork& work) {
  work.leave_match();
  if (state_ != State::open) return;  // all ranks have arrived, so no rank waits for this call
  calls_.withdraw(work.rank());
  works_[static_cast<std::size_t>(work.rank())].reset();
}

std::string CollectiveSlot::describe(const RankWork& work) const {
  const bool waits = state_ == State::waiting || state_ == State::carried_out;
  if (calls_.fit() && waits) {
    return fmt::format("{} (all ranks have called it; earlier collectives of the group are under way)", title_of(work));
  }
  if (calls_.fit() && full()) {
    return fmt::format("{} (all ranks have called it; the transfer is under way)", title_of(work));
  }
  return calls_.describe(title_of(work));
}

std::vector<int> CollectiveSlot::waits_for(const RankWork& work) const { return calls_.waits_for(work.rank()); }

void CollectiveSlot::list_in_flight(int rank, Works& works) const {
  const auto& work = works_[static_cast<std::size_t>(rank)];
  if (work != nullptr && work->incomplete()) works.push_back(work);
}

void CollectiveSlot::list_pending(std::vector<PendingOperation>& pending, int only_of) const {
  for (const auto& work : works_) {
    if (work == nullptr || (!work->incomplete() && !work->timed_out())) continue;
    if (only_of >= 0 && work->global_rank() != only_of) continue;
    pending.push_back(pending_of(*work, *this));
  }
}

void CollectiveSlot::close() noexcept {
  if (state_ == State::free) return;
  if (state_ == State::launched) services_.fabric.cancel(*this);
  services_.timers().cancel(*this);
  for (auto& work : works_) {
    if (work != nullptr) work->leave_match();
    work.reset();
  }
  pending_mismatch_.reset();
  failure_.clear();
  state_ = State::free;
}

}  // namespace rehearse::comm
